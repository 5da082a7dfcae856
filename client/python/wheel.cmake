# The library as the wheel carries it: one file that needs nothing but libc. Included when scikit-build-core builds (SKBUILD).
# SKV_CURL: the folder where make-wheel has built libcurl with HTTP and OpenSSL alone.

set(SKV_CURL "" CACHE PATH "prefix of a static libcurl with HTTP and OpenSSL alone (client/python/make-wheel)")
if(NOT EXISTS ${SKV_CURL}/lib/libcurl.a)
  message(FATAL_ERROR "there is no lib/libcurl.a in SKV_CURL='${SKV_CURL}': build the wheel with client/python/make-wheel")
endif()

# What these targets link is a static library from here on; their headers stay.
function(skv_link_static target)
  set(files "")
  foreach(name ${ARGN})
    find_library(SKV_STATIC_${name} lib${name}.a REQUIRED)
    list(APPEND files ${SKV_STATIC_${name}})
  endforeach()
  set_property(TARGET PkgConfig::${target} PROPERTY INTERFACE_LINK_LIBRARIES ${files})
endfunction()
skv_link_static(SODIUM sodium)
skv_link_static(URING uring)
skv_link_static(PROTOBUFC protobuf-c)
skv_link_static(CURL ssl crypto)
set_property(TARGET PkgConfig::CURL PROPERTY INTERFACE_LINK_LIBRARIES
  ${SKV_CURL}/lib/libcurl.a ${SKV_STATIC_ssl} ${SKV_STATIC_crypto} ${CMAKE_DL_LIBS} Threads::Threads)

# No name with a version, since a wheel has no links; never unloaded, since libraries inside it have handlers at exit.
set_property(TARGET slabkv PROPERTY VERSION)
set_property(TARGET slabkv PROPERTY SOVERSION)
# What leaves it is what lib/libslabkv.map names, so a process with another OpenSSL or libcurl keeps both.
target_link_options(slabkv PRIVATE -Wl,-Bsymbolic -Wl,--gc-sections -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -s)
install(TARGETS slabkv LIBRARY DESTINATION slabkv COMPONENT python)
