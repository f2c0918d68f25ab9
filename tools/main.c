/* The `sluice` command: finds the subcommand and hands it the rest of the arguments. */
#include "tools/progress/console.h"
#include "tools/progress/json_out.h"
#include "tools/progress/log_json.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/report/version_info.h"
#include "tools/session/commands.h"

#include "cpu/dense/dense.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * What the command ends with: base/error/error.c has the codes of errors, signals.h those of
 * signals. The help, README.md and sluice(1) tell these words (tests/cli/test_exit_codes.py).
 */
static const struct {
    int code;
    const char *meaning;
} exit_codes[] = {
    {0, "done"},
    {1, "error"},
    {2, "usage"},
    {3, "bad input"},
    {4, "infeasible budget"},
    {5, "I/O error, full disk or damaged store"},
    {75, "stopped by the time limit"},
    {130, "stopped by SIGINT"},
    {143, "stopped by SIGTERM"},
};

static void print_help(void)
{
    printf("Example: sluice convert flights-4d.tns.xz flights-4d.slc &&\n"
           "         sluice cpd flights-4d.slc --rank 16 --memory 2GiB\n\n"
           "sluice factorizes sparse tensors that do not fit in memory.\n\nCommands:\n");
    for (size_t i = 0; commands_all[i] != NULL; i++) {
        printf("  %-10s %s\n", commands_all[i]->name, commands_all[i]->summary);
    }
    printf("\nsluice COMMAND --help tells the options of a command, sluice --version the "
           "features.\n\nExit codes:\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++) {
        printf("  %-10d %s\n", exit_codes[i].code, exit_codes[i].meaning);
    }
}

/* `--version`, and with `--json` behind it the same as an object. */
static int version(int argc, char **argv)
{
    struct slc_error err = SLC_ERROR_INIT;
    const bool json = argc > 2 && strcmp(argv[2], "--json") == 0;
    enum slc_status status;

    if (argc > (json ? 3 : 2)) {
        (void)slc_fail(&err, SLC_ERR_USAGE,
                       "unexpected argument '%s': --version takes --json alone",
                       argv[json ? 3 : 2]);
        return console_error(&err);
    }
    json_t *info = version_info_json();
    if (json) {
        status = json_out_print(info, &err);
    } else {
        status = json_out_complete(&err);
        if (status == SLC_OK) {
            version_info_print(info);
        }
        json_decref(info);
    }
    return status == SLC_OK ? 0 : console_error(&err);
}

/* Turns `help WORD ..` into `WORD .. --help`. */
static void turn_help(int argc, char **argv)
{
    static char help_option[] = "--help";

    for (int i = 1; i + 1 < argc; i++) {
        argv[i] = argv[i + 1];
    }
    argv[argc - 1] = help_option;
}

static int dispatch(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "help") == 0) {
        turn_help(argc, argv);
    }
    const char *word = argc > 1 ? argv[1] : "--help";

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help();
        return argc > 1 ? 0 : 2;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        return version(argc, argv);
    }
    for (const struct command *const *command = commands_all; *command != NULL; command++) {
        if (strcmp(word, (*command)->name) == 0) {
            const int code = (*command)->run(*command, argc - 1, argv + 1);

            run_log_end(code);
            return code;
        }
    }
    return commands_unknown("command", word, commands_all, "sluice --help");
}

/*
 * Standard streams that are closed (`>&-`) are opened for what they are not for: the numbers would
 * else go to the first files that are opened, and what is printed into a store. They fail as
 * before.
 */
static bool occupy_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        const int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) != fd) {
            return false;
        }
    }
    return true;
}

/*
 * Writes what standard output holds back. 0, or why it, or something before it, could not be
 * written: that of an earlier time is not kept, and another try, of a line end, tells it.
 */
static int finish_output(void)
{
    errno = 0;
    if (fflush(stdout) != 0) {
        return errno != 0 ? errno : EIO;
    }
    if (ferror(stdout) == 0) {
        return 0;
    }
    errno = 0;
    return (putchar('\n') == EOF || fflush(stdout) != 0) && errno != 0 ? errno : EIO;
}

static bool is_limited(int resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/*
 * OpenBLAS, as it is loaded, starts a thread for each further processor, which takes 128 MiB, and
 * where these cannot be had, as under a limit of the address space (ulimit -v, h_vmem of a queue),
 * tries for ever: the process would never end, not even after --help. Begun anew with the word that
 * one thread does, it starts none.
 */
static void begin_without_blas_threads(char **argv)
{
    static const char name[] = "OPENBLAS_NUM_THREADS";
    const char *threads = getenv(name);

    if ((is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)) &&
        (threads == NULL || strcmp(threads, "1") != 0) && setenv(name, "1", 1) == 0) {
        /* What refuses this leaves the process as it was. */
        (void)execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv)
{
    if (!occupy_standard_streams()) {
        return 1;
    }
    begin_without_blas_threads(argv);
    slc_dense_end_blas_threads();
    json_out_start();
    /* A file that may not grow further (ulimit -f) is then a write that fails, as on a full disk,
     * not the end of us. */
    (void)signal(SIGXFSZ, SIG_IGN);
    int code = dispatch(argc, argv);
    progress_stop();
    /* A signal that is ending the process has taken something away from it: what it says of that
     * is not how it ended. */
    signals_abandon_by(NULL, NULL);
    int failed = finish_output();
    if (failed != 0 && code == 0) {
        struct slc_error err = SLC_ERROR_INIT;

        (void)slc_fail_errno(&err, failed, "standard output", "cannot write the results");
        code = console_error(&err);
    }
    return code;
}
