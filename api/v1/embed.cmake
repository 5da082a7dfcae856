# cmake -DIN=file -DOUT=file.c -DNAME=function -P embed.cmake
# Turns a text file into a C function that returns it as one NUL-terminated string. An array of bytes,
# because a string literal of this length is not portable.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n\t" bytes "${bytes}")
file(WRITE ${OUT} "/* Made from a text file by embed.cmake; edit that one. */
const char *${NAME}(void);

static const char text[] = {
\t${bytes}0
};

const char *${NAME}(void) { return text; }
")
