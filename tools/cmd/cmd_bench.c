/* sluice bench: finds the benchmark and runs it with the remaining arguments. */
#include "tools/bench/bench.h"
#include "tools/progress/console.h"
#include "tools/session/commands.h"

#include <stdio.h>
#include <string.h>

/* Benchmarks, in the order of the help. */
static const struct command *const benches[] = {
    &bench_stream, &bench_mttkrp, &bench_roofline, &bench_codec, &bench_convert, &bench_cpd,
    &bench_device, &bench_io,     &bench_pass,     &bench_ttv,   &bench_ttm,     &bench_fpga,
    NULL,
};

static const struct option no_options[] = {{.name = NULL}};

/* Returns the name of a benchmark without "bench": "stream" for "bench stream". */
static const char *bench_name(const struct command *bench)
{
    return bench->name + strlen("bench ");
}

static void print_help(const struct command *command)
{
    options_print_help(command);
    printf("\nBenchmarks:\n");
    for (size_t i = 0; benches[i] != NULL; i++) {
        printf("  %-10s %s\n", bench_name(benches[i]), benches[i]->summary);
    }
    printf("\nSee sluice bench NAME --help for the options of a benchmark.\n");
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help(command);
        return argc > 1 ? 0 : 2;
    }
    for (size_t i = 0; benches[i] != NULL; i++) {
        if (strcmp(word, bench_name(benches[i])) == 0) {
            return benches[i]->run(benches[i], argc - 1, argv + 1);
        }
    }
    return commands_unknown("benchmark", word, benches, "sluice bench --help");
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure the performance of this machine and of sluice",
    .example = "sluice bench mttkrp flights-4d.slc --rank 16,32 --threads 1,2",
    .operands = "NAME ...",
    .operands_min = 1,
    .operands_max = 1,
    .options = no_options,
    .subcommands = benches,
    .notes = "Every result is printed with its hardware ceiling, measured in the same run. No "
             "other programs\nshould run on the machine at the same time.",
    .run = run,
};
