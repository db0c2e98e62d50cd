# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# A forked child: its calls are refused, it has no plaintext of its parent, and may open the file itself; the parent goes on.
# The child closing the file does not release its parent's locks.
. "$SRC/tests/library/common.sh"

cd "$CASE_DIR"
program forks
keys lab
head -c 2000000 /dev/urandom > plain
encrypt plain made
must ./forks made plain

# mpicrypt file seal is refused while the parent has the file open, whatever its child closed.
cat > closes.c <<'END'
#include <mpicrypt_file.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    mpicrypt_file_t *file;
    int status = argc > 1 ? mpicrypt_file_open(argv[1], NULL, &file, NULL) : 1;
    pid_t pid = 0 == status ? fork() : -1;

    if (0 == pid) {
        mpicrypt_file_close(file);
        _exit(0);
    }
    (void) waitpid(pid, &status, 0);
    return 0 != status ? 9 : 0 == WEXITSTATUS(system("mpicrypt file seal made")) ? 8 : 0;
}
END
must cc $VARIANT_CFLAGS closes.c -o closes $(pkg-config --cflags --libs mpicrypt_file) -Wl,-rpath,"$PREFIX/lib"
says "a job or another mpicrypt has it open" ./closes made
must ./closes made
must mpicrypt file seal made
