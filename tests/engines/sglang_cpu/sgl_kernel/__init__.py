"""Stands for SGLang's compiled kernels, which a CPU has no wheel of: the engine falls back to torch."""

__version__ = "0.0.0"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_, **__):
        raise NotImplementedError(f"sgl_kernel.{name} is not here")

    return missing
