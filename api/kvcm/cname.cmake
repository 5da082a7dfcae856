# cmake -DIN=file.proto -DOUT=file.proto -DPACKAGE=name -P cname.cmake
# Copies a .proto file for protoc-c, which makes C names of the package: here of a short one. An option in the
# file itself would do the same, but drag protobuf-c's own file into the descriptors that reflection tells.
file(READ ${IN} text)
file(WRITE ${OUT} "${text}
import \"protobuf-c/protobuf-c.proto\";
option (pb_c_file).c_package = \"${PACKAGE}\";
")
