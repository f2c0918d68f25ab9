/* Makes the forecast at the start of a run in a forked process, and compares the forecast with the
 * actual values at the end. The process is forked before the run has threads that could hold locks.
 * The forked process returns its numbers through a pipe and prints nothing. */
#include "tools/forecast/forecast_ahead.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "storage/block/file_layout.h"
#include "storage/file/files.h"
#include "tools/progress/format.h"
#include "tools/progress/log_json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reading a smaller input takes a few hundredths of a second, as long as a forecast takes. */
#define INPUT_BYTES_MIN (UINT64_C(128) << 10)
enum { PATH_BYTES = 4096 };

/* Returns the bytes that this process has read by system calls, cached or not; 0: unknown. */
static uint64_t bytes_read(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    uint64_t bytes = 0;

    if (file != NULL) {
        if (fscanf(file, "rchar: %" SCNu64, &bytes) != 1) {
            bytes = 0;
        }
        (void)fclose(file);
    }
    return bytes;
}

/* Returns the size of a file, or of the files of a store; 0 if `path` does not exist or is
 * something else. */
static uint64_t size_of(const char *path)
{
    const struct slc_files *files = slc_files_system();
    char inside[PATH_BYTES];
    struct slc_file_stat stat;
    const struct dirent *entry;
    uint64_t bytes = 0;
    DIR *folder;

    if (files->stat_path(files->self, path, &stat) < 0) {
        return 0;
    }
    if (stat.kind != 'd') {
        return stat.kind == 'f' ? stat.bytes : 0;
    }
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) < PATH_BYTES &&
            files->stat_path(files->self, inside, &stat) >= 0 && stat.kind == 'f') {
            bytes += stat.bytes;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return bytes;
}

/* Runs in the forked process: writes the forecast to the pipe, if there is one, and exits. */
static void estimate_and_exit(int pipe_end,
                              uint64_t resident,
                              forecast_estimate_fn *estimate,
                              const void *context)
{
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct forecast forecast;
    struct forecast_totals expected;
    const char *bottleneck;

    slc_memory_resident_at_least(resident);
    /* End this process if a signal ends the parent. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
        dup2(nothing, STDERR_FILENO) >= 0 && estimate(context, &forecast, NULL) == SLC_OK) {
        expected = (struct forecast_totals){.memory_bytes = forecast.memory_bytes,
                                            .read_bytes = forecast.read_bytes,
                                            .final_bytes = forecast.final_bytes,
                                            .seconds = forecast_seconds(&forecast, &bottleneck)};
        if (write(pipe_end, &expected, sizeof expected) != (ssize_t)sizeof expected) {
            _exit(1);
        }
    }
    _exit(0);
}

/* Returns whether the forecast was received. */
static bool receive(int pipe_end, struct forecast_totals *expected)
{
    ssize_t got;

    do {
        got = read(pipe_end, expected, sizeof *expected);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *expected;
}

void forecast_ahead(struct forecast_ahead *of,
                    bool quiet,
                    const char *input,
                    forecast_estimate_fn *estimate,
                    const void *context)
{
    const uint64_t resident = slc_memory_resident();
    int ends[2];
    pid_t child;

    *of = (struct forecast_ahead){.known = false};
    if ((quiet && !run_log_is_open()) || (input != NULL && size_of(input) < INPUT_BYTES_MIN) ||
        pipe2(ends, O_CLOEXEC) < 0) {
        return;
    }
    child = fork();
    if (child == 0) {
        estimate_and_exit(ends[1], resident, estimate, context);
    }
    (void)close(ends[1]);
    of->known = child > 0 && receive(ends[0], &of->expected);
    (void)close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    of->read_before = bytes_read();
    of->start_ns = slc_clock_ns();
}

static double times(double expected, double actual)
{
    return slc_ratio(expected, actual);
}

void forecast_ahead_start(struct forecast_ahead *of)
{
    *of = (struct forecast_ahead){.read_before = bytes_read(), .start_ns = slc_clock_ns()};
}

void forecast_compare(const struct forecast_ahead *of, bool quiet, const char *output)
{
    forecast_compare_bytes(of, quiet, 0, output != NULL ? size_of(output) : 0);
}

void forecast_compare_bytes(const struct forecast_ahead *of,
                            bool quiet,
                            uint64_t read,
                            uint64_t size)
{
    const struct forecast_totals *expected = &of->expected;
    const double seconds = slc_seconds_since(of->start_ns);
    const uint64_t memory = slc_memory_peak();
    struct format_text a, b, c;

    if (!of->known) {
        return;
    }
    read = read > 0 ? read : bytes_read() - of->read_before;
    if (!quiet) {
        printf("  %-12s memory %s of %s (%.2f), read %s", "expected",
               format_memory(&a, expected->memory_bytes), format_memory(&b, memory),
               times((double)expected->memory_bytes, (double)memory),
               format_data(&c, (double)expected->read_bytes));
        printf(" of %s (%.2f)", format_data(&b, (double)read),
               times((double)expected->read_bytes, (double)read));
        if (size > 0) {
            printf(", disk %s of %s (%.2f)", format_data(&a, (double)expected->final_bytes),
                   format_data(&b, (double)size),
                   times((double)expected->final_bytes, (double)size));
        }
        if (expected->seconds >= 0) {
            printf(", time %s of %s (%.2f)", format_seconds(&a, expected->seconds),
                   format_seconds(&b, seconds), times(expected->seconds, seconds));
        }
        printf("\n");
    }
    run_log_estimate(json_pack(
        "{s:I, s:I, s:I, s:o, s:{s:I, s:I, s:I, s:f}}", "memory_bytes",
        (json_int_t)expected->memory_bytes, "read_bytes", (json_int_t)expected->read_bytes,
        "final_bytes", (json_int_t)expected->final_bytes, "seconds",
        expected->seconds < 0 ? json_null() : json_real(expected->seconds), "actual",
        "memory_bytes", (json_int_t)memory, "read_bytes", (json_int_t)read, "final_bytes",
        (json_int_t)size, "seconds", seconds));
}
