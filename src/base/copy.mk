# gcc copies eleven bytes of a size it does not know by a string instruction, which takes twenty times as long as libc's
# own copy: a third of a lookup. Other compilers and machines have no such option.
COPY_CFLAGS := $(shell $(CC) -mstringop-strategy=libcall -xc -E /dev/null >/dev/null 2>&1 && echo -mstringop-strategy=libcall)
