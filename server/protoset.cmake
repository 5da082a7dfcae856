# cmake -DIN=file -DOUT=file.c -DNAME=function -P protoset.cmake
# Turns the descriptors that protoc made into a C function that returns them.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n\t" bytes "${bytes}")
file(WRITE ${OUT} "/* Made from .proto files by protoset.cmake; edit those. */
#include <stddef.h>
#include <stdint.h>

const uint8_t *${NAME}(size_t *n);

static const uint8_t bytes[] = {
\t${bytes}
};

const uint8_t *${NAME}(size_t *n)
{
\t*n = sizeof bytes;
\treturn bytes;
}
")
