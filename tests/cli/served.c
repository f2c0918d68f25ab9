/* The command, also as a server for tests that run it thousands of times: loading its libraries
 * takes longer than rejecting a forged store.
 *
 * It is linked like the command, with another main in front (-Wl,--wrap=main). With --serve OUTPUT
 * MESSAGES it is a server, otherwise the command. A request is its length in bytes as 32 bits in
 * host byte order, then the working folder and the arguments, each terminated by a zero byte. For
 * each request a child runs the command's main, with its output and messages redirected to the
 * descriptors with those numbers; then the server replies with the wait status, 32 bits. It ends at
 * the end of the requests. It starts no threads, so that each child starts like a new process. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST_BYTES = 1 << 16, ARGUMENTS = 256 };

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

static bool read_all(void *to, size_t bytes)
{
    char *at = to;

    while (bytes > 0) {
        ssize_t got = read(STDIN_FILENO, at, bytes);

        if (got <= 0) {
            return false;
        }
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* Run by a child: `text` holds its folder and arguments, each terminated by a zero byte. */
static int run_command(char *text, size_t bytes, int output, int messages)
{
    static char name[] = "sluice";
    static char *arguments[ARGUMENTS + 1];
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int count = 0;

    arguments[count++] = name;
    for (char *at = text + strlen(text) + 1; at < text + bytes; at += strlen(at) + 1) {
        if (count == ARGUMENTS) {
            return EXIT_FAILURE;
        }
        arguments[count++] = at;
    }
    if (chdir(text) != 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(output, STDOUT_FILENO) < 0 || dup2(messages, STDERR_FILENO) < 0) {
        return EXIT_FAILURE;
    }
    (void)close(nothing);
    (void)close(output);
    (void)close(messages);
    return __real_main(count, arguments);
}

int __wrap_main(int argc, char **argv)
{
    static char text[REQUEST_BYTES + 1];
    uint32_t bytes;

    if (argc != 4 || strcmp(argv[1], "--serve") != 0) {
        return __real_main(argc, argv);
    }
    while (read_all(&bytes, sizeof bytes)) {
        int status = 0;
        pid_t child;

        if (bytes > REQUEST_BYTES || !read_all(text, bytes)) {
            return EXIT_FAILURE;
        }
        text[bytes] = '\0';
        child = fork();
        if (child == 0) {
            return run_command(text, bytes, atoi(argv[2]), atoi(argv[3]));
        }
        if (child < 0 || waitpid(child, &status, 0) != child ||
            write(STDOUT_FILENO, &status, sizeof status) != (ssize_t)sizeof status) {
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
