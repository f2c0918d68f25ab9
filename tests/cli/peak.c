/* Runs a command and reports its peak resident size, as counted by the system.
 *
 *     peak REPORT CGROUP COMMAND ARGUMENT..
 *
 * The peak that the system reports for a finished process (ru_maxrss) covers the time before exec,
 * too, when a child is as large as its parent: 10 to 40 MiB for Python, as much as the measured
 * commands. For a child of this small program it is the command's own.
 *
 * The child joins the cgroup whose list of processes is the file CGROUP ("" for none). The
 * descriptor REPORT receives a line: wait status, peak resident KiB, blocks of 512 bytes read from
 * drives, microseconds of processor time. The child is killed when this program ends. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_RUN = 127 };

/* Joins the cgroup: writing "0" to its file adds the writing process. */
static int join(const char *cgroup)
{
    int fd = open(cgroup, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, "0", 1) == 1 && close(fd) == 0;
}

static int64_t microseconds(const struct timeval *time)
{
    return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    int status = 0;
    pid_t child;

    if (argc < 4) {
        return EXIT_FAILURE;
    }
    child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)fcntl(atoi(argv[1]), F_SETFD, FD_CLOEXEC);
        if (argv[2][0] == '\0' || join(argv[2])) {
            (void)execv(argv[3], argv + 3);
        }
        perror(argv[3]);
        _exit(NOT_RUN);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child ||
        dprintf(atoi(argv[1]), "%d %ld %ld %" PRId64 "\n", status, usage.ru_maxrss,
                usage.ru_inblock,
                microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime)) < 0) {
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
