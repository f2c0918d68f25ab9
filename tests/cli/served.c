/* The command, also as a server for tests that run it thousands of times: loading its libraries
 * takes longer than refusing a forged store.
 *
 * It is linked as the command is, with a main of its own before that of the command
 * (-Wl,--wrap=main). With --serve OUTPUT MESSAGES it is a server, else the command. A request is
 * the number of its bytes as 32 bits of this machine, then the working folder and the arguments,
 * each ended by a zero byte. For each one a child runs the command's main, its output and messages
 * going to the descriptors of those numbers; then the server replies with the wait status, 32 bits.
 * The end of the requests ends it. It starts no thread, so that each child begins as a fresh
 * process does.
 */
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

/* What a child runs: `text` holds its folder and arguments, each ended by a zero byte. */
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
