/* The `sluice` command: finds the subcommand and runs it with the remaining arguments. */
#include "storage/manifest/json_text.h"
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

/* Exit codes: base/error/error.c defines the codes of errors, signals.h the codes of signals. Help,
 * README.md and sluice(1) have the same texts (tests/cli/test_exit_codes.py). */
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
    printf("\nSee sluice COMMAND --help for the options of a command, and sluice --version for the "
           "features.\n\nExit codes:\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof exit_codes[0]; i++) {
        printf("  %-10d %s\n", exit_codes[i].code, exit_codes[i].meaning);
    }
}

/* Prints the version: `--version`, or `--version --json` for JSON. */
static int version(int argc, char **argv)
{
    struct slc_error err = SLC_ERROR_INIT;
    const bool json = argc > 2 && strcmp(argv[2], "--json") == 0;
    enum slc_status status;

    if (argc > (json ? 3 : 2)) {
        (void)slc_fail(&err, SLC_ERR_USAGE,
                       "unexpected argument '%s': --version accepts only --json",
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

/* Rewrites `help WORD ..` to `WORD .. --help`. */
static void rewrite_help(int argc, char **argv)
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
        rewrite_help(argc, argv);
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

/* If a standard stream is closed (`>&-`), opens /dev/null in its place. Otherwise the first files
 * opened would reuse the descriptors, and output would be printed into a store. Standard input is
 * opened only for writing and the outputs only for reading, so that reads and writes still fail. */
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

/* Flushes standard output. Returns 0, or the errno of a failed write. Standard I/O does not keep
 * the errno of an earlier failure; writing a newline reproduces the failure. */
static int flush_output(void)
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

/* Re-executes the process with OPENBLAS_NUM_THREADS=1 under a limit of the address space (ulimit
 * -v, h_vmem of a queue). When OpenBLAS is loaded, it starts a thread for each processor but the
 * first, each with 128 MiB, and retries forever if that memory is refused: even --help would never
 * end. With OPENBLAS_NUM_THREADS=1 it starts no threads. */
static void restart_without_blas_threads(char **argv)
{
    static const char name[] = "OPENBLAS_NUM_THREADS";
    const char *threads = getenv(name);

    if ((is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA)) &&
        (threads == NULL || strcmp(threads, "1") != 0) && setenv(name, "1", 1) == 0) {
        /* If exec fails, the process continues unchanged. */
        (void)execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv)
{
    if (!occupy_standard_streams()) {
        return 1;
    }
    restart_without_blas_threads(argv);
    slc_dense_end_blas_threads();
    slc_json_record_failures();
    /* With SIGXFSZ ignored, a write beyond the file size limit (ulimit -f) fails, as on a full
     * disk, instead of ending the process. */
    (void)signal(SIGXFSZ, SIG_IGN);
    int code = dispatch(argc, argv);
    progress_stop();
    /* While a signal ends the process, resulting errors must not replace the reported reason. */
    (void)signals_abandon_by(NULL, NULL);
    int failed = flush_output();
    if (failed != 0 && code == 0) {
        struct slc_error err = SLC_ERROR_INIT;

        (void)slc_fail_errno(&err, failed, "standard output", "cannot write the results");
        code = console_error(&err);
    }
    return code;
}
