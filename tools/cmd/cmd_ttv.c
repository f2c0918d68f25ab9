/* sluice ttv: multiplies a tensor with vectors in one or more modes. The result is a store or a
 * number. */
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/resume/build_folder.h"
#include "convert/number/format.h"
#include "engine/product/contract.h"
#include "engine/session/product_session.h"
#include "engine/stream/tile_stream.h"
#include "report/json_parts.h"
#include "storage/manifest/store.h"
#include "tools/build/build_options.h"
#include "tools/cmd/ttv_batch.h"
#include "tools/forecast/forecast.h"
#include "tools/options/fields.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/progress/progress.h"
#include "tools/report/product_gpu.h"
#include "tools/session/commands.h"
#include "tools/session/part_option.h"
#include "tools/session/session.h"

#include <inttypes.h>
#include <stdio.h>

struct arguments {
    struct build_options build;
    struct session_options session; /* only the fields for reading and for devices are used */
    struct option_modes modes;
    struct option_strings vectors;
    const char *batch;
    const char *part;
    bool sort;
    bool dry_run;
    bool verbose;
    bool json;
};

static const struct option options[] = {
    {"mode", OPTION_MORE_MODES, offsetof(struct arguments, modes), .required = true, .value = "K",
     .help = "mode to multiply, counted from 1; repeat the option for several modes"},
    {"vector", OPTION_MORE_STRINGS, offsetof(struct arguments, vectors), .value = "V.npy",
     .help = "vector with one number per index of a mode; the first --vector belongs to the first "
             "--mode"},
    {"batch", OPTION_STRING, offsetof(struct arguments, batch), .value = "V1.npy,V2.npy,..",
     .help = "instead of --vector: vectors of one mode, each of which has its own result; the "
             "number of the vector replaces %d in OUT-%d.slc"},
    OPTION_ROW_PART(arguments, part),
    {"sort", OPTION_FLAG, offsetof(struct arguments, sort),
     .help = "sort the sums even if they are computed in the order of the result"},
    {"dry-run", OPTION_FLAG, offsetof(struct arguments, dry_run),
     .help = "print the bytes to read, whether sums would be sorted, and the memory, and write "
             "nothing"},
    SESSION_OPTION_ROW_IO(arguments, session.io),
    SESSION_OPTION_ROW_SCHEDULE(arguments, session.schedule),
    SESSION_OPTION_ROW_IO_LIMIT(arguments),
    SESSION_OPTION_ROWS_DEVICE(arguments),
    SESSION_OPTION_ROW_SHARE(arguments),
    BUILD_OPTION_ROWS(arguments),
    {"json", OPTION_FLAG, offsetof(struct arguments, json),
     .help = "print the report as one JSON object"},
    {"verbose", OPTION_FLAG, offsetof(struct arguments, verbose), .letter = 'v',
     .help = "also print how the store was read, the memory and the times"},
    {.name = NULL}};

/* State of a product. */
struct product {
    struct arguments args;
    struct slc_contract_options contract;
    struct slc_tile_stream tiles;
    struct slc_products_choice choice;
    struct slc_device_products device;
    struct slc_contract_report report;
    struct ttv_batch batch;
    double seconds;
};

/* Sets how tiles are read. If the largest blocks are read first, sums do not arrive in the order of
 * the result and must be sorted. */
static enum slc_status fill_tiles(struct product *product, struct slc_error *err)
{
    const struct session_options *session = &product->args.session;

    if (!slc_io_parse(session->io, &product->tiles.io) ||
        !slc_schedule_parse(session->schedule, &product->tiles.schedule)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--io %s or --schedule %s is not supported by this library", session->io,
                        session->schedule);
    }
    product->tiles.read_limit = session->io_limit;
    product->contract.stream = &product->tiles;
    product->contract.sort = product->args.sort || product->tiles.schedule == SLC_SCHEDULE_LARGEST;
    return SLC_OK;
}

/* Chooses the device that multiplies, if any. */
static enum slc_status fill_products(struct product *product, struct slc_error *err)
{
    const struct session_options *session = &product->args.session;
    struct slc_products_choice *choice = &product->choice;
    const enum slc_status status = product_gpu_choose(session, choice, err);

    product->device = (struct slc_device_products){.device = choice->device,
                                                   .hybrid = choice->hybrid,
                                                   .streams = (unsigned)session->streams,
                                                   .optional = choice->optional,
                                                   .why = choice->refused};
    return status;
}

static enum slc_status
fill_options(struct product *product, const struct operands *operands, struct slc_error *err)
{
    const struct arguments *args = &product->args;
    struct slc_contract_options *out = &product->contract;

    if (args->batch != NULL && (args->vectors.count > 0 || args->modes.count != 1)) {
        return slc_fail(err, SLC_ERR_USAGE, "--batch needs exactly one --mode and no --vector");
    }
    if (args->batch == NULL && args->vectors.count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "--vector V.npy must be given");
    }
    if (args->batch == NULL && args->modes.count != args->vectors.count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the number of modes (%u) and of vectors (%u) must be equal",
                        args->modes.count, args->vectors.count);
    }
    SLC_TRY(build_codec(&args->build, &out->codec, err));
    SLC_TRY(part_option_parse(args->part, &out->part, err));
    SLC_TRY(fill_tiles(product, err));
    out->store = operands->text[0];
    out->output = operands->count > 1 ? operands->text[1] : NULL;
    out->vector_count = args->modes.count;
    for (unsigned k = 0; k < args->modes.count; k++) {
        out->vectors[k].mode = args->modes.mode[k];
        out->vectors[k].path = args->vectors.text[k];
    }
    if (args->batch != NULL) {
        SLC_TRY(ttv_batch_create(&product->batch, args->batch, out->output, err));
        ttv_batch_apply(&product->batch, out);
    }
    out->names = true;
    out->relabel = build_relabel(&args->build);
    BUILD_SET(out, &args->build);
    out->dry_run = args->dry_run;
    return build_fibers(&args->build, &out->fibers, &out->run, err);
}

/* Returns the bytes of blocks that were read, with those of the sample of a part. */
static uint64_t bytes_read(const struct product *product)
{
    return product->tiles.stats.bytes_read + product->report.sample_bytes;
}

/* Describes the device for the report. */
static struct product_gpu describe_gpu(const struct product *product)
{
    return (struct product_gpu){.choice = &product->choice,
                                .refused = &product->device.why,
                                .plan = &product->device.plan,
                                .threads = product->report.threads,
                                .report =
                                    product->contract.dry_run ? NULL : &product->device.report};
}

static void print_device(const struct product *product, FILE *out)
{
    const struct product_gpu gpu = describe_gpu(product);

    product_gpu_print(&gpu, out);
}

static void print_store(const struct product *product,
                        const char *output,
                        uint64_t zero_sums,
                        const struct slc_builder_report *build)
{
    const struct slc_contract_report *report = &product->report;
    struct format_text a, b;
    char dims[FORMAT_DIMS_BYTES];

    printf("Wrote %s\n", output);
    printf("  %-12s %s\n", "dims", format_dims(dims, report->order, report->dims));
    printf("  %-12s %s partial sums and %s sums dropped\n", "zeros", format_count(&a, zero_sums),
           format_count(&b, build->explicit_zeros));
    printf("  %-12s %s\n", "order", report->ordered ? "sums written in order" : "sums sorted");
    build_report(build, report->order, report->dims);
}

/* Prints the part, with the bytes that are read, if a part is computed. */
static void print_part(const struct product *product)
{
    const struct slc_contract_report *report = &product->report;
    const uint64_t expected = report->part_bytes + report->sample_bytes;
    char text[PART_TEXT_BYTES];
    struct format_text a;

    if (product->contract.part.count > 0) {
        printf("  %-12s %s to read", "part",
               part_text(text, product->contract.part, report->part_blocks, report->layout_blocks,
                         expected));
        if (!product->contract.dry_run) {
            printf(", %s read", format_data(&a, (double)bytes_read(product)));
        }
        printf("\n");
    }
}

static void print_store_report(const struct product *product)
{
    const struct slc_contract_report *report = &product->report;
    const struct slc_contract_more *more = product->contract.more;

    print_store(product, product->contract.output, report->zero_sums, &report->build);
    for (unsigned r = 0; r < product->contract.more_count; r++) {
        print_store(product, more[r].output, more[r].zero_sums, &more[r].build);
    }
    print_part(product);
    print_device(product, stdout);
    build_report_memory(product->contract.memory_bytes);
}

/* Prints the layout that is read, and its fibers. */
static void print_layout(const struct product *product, FILE *out)
{
    const struct slc_contract_report *report = &product->report;
    struct format_text a, b, c;

    (void)fprintf(out, "  %-12s %s: %s nonzeros in %" PRIu64 " block%s, %s\n", "layout",
                  session_layout_name(&a, report->layout, report->layout_mode),
                  format_count(&b, report->nnz), report->layout_blocks,
                  plural(report->layout_blocks), format_data(&c, (double)report->layout_bytes));
    if (report->layout_fibers > 0) {
        (void)fprintf(out, "  %-12s %s of mode %u are nonempty, of %.3g\n", "fibers",
                      format_count(&a, report->layout_fibers), report->layout_mode + 1,
                      report->layout_fibers_possible);
    }
    for (unsigned k = 0; k < product->contract.vector_count && report->nnz > 0; k++) {
        (void)fprintf(
            out, "  %-12s mode %u: indices %s to %s are in use%s; %s%s elements in memory\n",
            k == 0 ? "vectors" : "", product->contract.vectors[k].mode + 1,
            format_count(&a, report->used[k].first + 1), format_count(&b, report->used[k].last + 1),
            report->used[k].relabelled ? ", as numbered by the store" : "",
            product->contract.dry_run ? "at most " : "", format_count(&c, report->used[k].held));
    }
}

/* Prints the report of a dry run. */
static void print_dry_run(const struct product *product)
{
    const struct slc_contract_report *report = &product->report;
    struct format_text a, b;
    char dims[FORMAT_DIMS_BYTES];

    if (product->contract.output == NULL) {
        printf("Would compute a number\n");
    } else {
        printf("Would write %s\n", product->contract.output);
        for (unsigned r = 0; r < product->contract.more_count; r++) {
            printf("Would write %s\n", product->contract.more[r].output);
        }
        printf("  %-12s %s, up to %s nonzeros\n", "dims",
               format_dims(dims, report->order, report->dims), format_count(&a, report->sums_most));
        printf("  %-12s %s\n", "order",
               report->ordered
                   ? "sums would be written in order"
                   : "sums would be sorted, in a temporary file if memory does not suffice");
    }
    print_layout(product, stdout);
    print_part(product);
    print_device(product, stdout);
    printf("  %-12s minimum %s, budget %s; %u thread%s\n", "memory",
           format_memory(&a, report->least_bytes),
           format_memory(&b, product->contract.memory_bytes), report->threads,
           plural(report->threads));
}

/* Prints to `out` how the store was read. If the result is a number, `out` is standard error,
 * because standard output contains only the number. */
static void print_reading(const struct product *product, FILE *out)
{
    const struct slc_contract_report *report = &product->report;
    const struct slc_tile_stream *tiles = &product->tiles;
    const struct slc_stream_stats *stats = &tiles->stats;
    const double workers = report->workers;
    struct format_text a, b;

    print_layout(product, out);
    (void)fprintf(out, "  %-12s %s at %s/s by %s%s, schedule %s\n", "read",
                  format_data(&a, (double)stats->bytes_read),
                  format_data(&b, slc_ratio((double)stats->bytes_read, stats->pass_seconds)),
                  slc_io_name(stats->io),
                  stats->direct ? ", direct (bypassing the page cache)" : "",
                  slc_schedule_name(tiles->used_schedule));
    (void)fprintf(out, "  %-12s %u of %s; %u thread%s\n", "slots", tiles->slot_count,
                  format_memory(&a, tiles->slot_bytes), report->threads, plural(report->threads));
    if (stats->note[0] != '\0') {
        (void)fprintf(out, "  %-12s %s\n", "note", stats->note);
    }
    (void)fprintf(out,
                  "  %-12s total %.3fs, multiply %.3fs; per thread: decode %.3fs, wait for blocks "
                  "%.3fs, for earlier tiles %.3fs\n",
                  "times", product->seconds, report->scan_seconds, stats->decode_seconds / workers,
                  stats->wait_seconds / workers, tiles->turn_seconds / workers);
}

static json_t *seconds_json(const struct product *product)
{
    const struct slc_contract_report *report = &product->report;
    const struct slc_stream_stats *stats = &product->tiles.stats;
    const double workers = report->workers;

    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total", product->seconds,
                     "multiply", report->scan_seconds, "decode", stats->decode_seconds / workers,
                     "wait_read", stats->wait_seconds / workers, "wait_turn",
                     product->tiles.turn_seconds / workers, "spill", report->build.spill_seconds,
                     "sort", report->build.sort_seconds, "encode", report->build.encode_seconds,
                     "write", report->build.write_seconds);
}

/* Sets the members of the result: a number, or the size of a store. */
static void set_result_json(const struct product *product, json_t *record)
{
    const struct slc_contract_report *report = &product->report;

    if (product->contract.output == NULL) {
        slc_json_set_real(record, "number", report->scalar);
        return;
    }
    if (product->args.batch == NULL) {
        json_t *only =
            ttv_batch_result_json(product->contract.output, report->zero_sums, &report->build);

        (void)json_object_del(only, "output");
        (void)json_object_update_new(record, only);
        return;
    }
    json_t *results = json_array();
    (void)json_array_append_new(results, ttv_batch_result_json(product->contract.output,
                                                               report->zero_sums, &report->build));
    for (unsigned r = 0; r < product->contract.more_count; r++) {
        const struct slc_contract_more *more = &product->contract.more[r];

        (void)json_array_append_new(
            results, ttv_batch_result_json(more->output, more->zero_sums, &more->build));
    }
    slc_json_set(record, "results", results);
}

/* Sets the members that describe how the store was read, the memory and the times. */
static void set_run_json(const struct product *product, json_t *record)
{
    const struct slc_tile_stream *tiles = &product->tiles;
    json_t *run = json_pack("{s:s, s:b, s:s, s:i, s:I, s:I, s:I, s:o}", "io",
                            slc_io_name(tiles->stats.io), "direct", (int)tiles->stats.direct,
                            "schedule", slc_schedule_name(tiles->used_schedule), "slots",
                            (int)tiles->slot_count, "slot_bytes", (json_int_t)tiles->slot_bytes,
                            "bytes_read", (json_int_t)bytes_read(product), "memory_peak_bytes",
                            (json_int_t)slc_memory_peak(), "seconds", seconds_json(product));

    (void)json_object_update_new(record, run);
}

/* Lists, for each vector, the first and last used index, from 1, and the elements in memory. */
static void set_vectors_json(const struct product *product, json_t *record)
{
    json_t *used = json_array(), *held = json_array();

    for (unsigned k = 0; k < product->contract.vector_count; k++) {
        const bool any = product->report.nnz > 0;

        (void)json_array_append_new(
            used, json_pack("[I, I]", (json_int_t)product->report.used[k].first + any,
                            (json_int_t)product->report.used[k].last + any));
        (void)json_array_append_new(held, json_integer((json_int_t)product->report.used[k].held));
    }
    slc_json_set(record, "used", used);
    slc_json_set(record, "held", held);
}

static json_t *part_json(const struct product *product)
{
    const struct slc_contract_report *report = &product->report;

    return json_pack("{s:i, s:i, s:I, s:I}", "number", (int)product->contract.part.number + 1, "of",
                     (int)product->contract.part.count, "blocks", (json_int_t)report->part_blocks,
                     "bytes_expected",
                     (json_int_t)report->part_bytes + (json_int_t)report->sample_bytes);
}

static json_t *device_json(const struct product *product)
{
    const struct product_gpu gpu = describe_gpu(product);

    return product_gpu_json(&gpu);
}

static enum slc_status print_json(const struct product *product, struct slc_error *err)
{
    const struct slc_contract_report *report = &product->report;
    const bool dry_run = product->contract.dry_run;
    uint32_t modes = 0;
    struct format_text name;
    struct fault_text why;

    for (unsigned k = 0; k < product->contract.vector_count; k++) {
        modes |= UINT32_C(1) << product->contract.vectors[k].mode;
    }
    json_t *record = json_pack(
        "{s:s, s:b, s:o, s:I, s:s, s:I, s:I, s:i, s:I, s:I, s:I}", "schema", "sluice-ttv-1",
        "dry_run", (int)dry_run, "modes", slc_json_modes(modes), "nnz", (json_int_t)report->nnz,
        "layout", session_layout_name(&name, report->layout, report->layout_mode), "blocks",
        (json_int_t)report->layout_blocks, "layout_bytes", (json_int_t)report->layout_bytes,
        "threads", (int)report->threads, "memory_least_bytes", (json_int_t)report->least_bytes,
        "process_bytes", (json_int_t)report->process_bytes, "memory_budget_bytes",
        (json_int_t)product->contract.memory_bytes);
    set_vectors_json(product, record);
    slc_json_set(record, "device", device_json(product));
    if (product->device.why.status != SLC_OK) {
        slc_json_set_text(record, "no_device", fault_text(&why, &product->device.why));
    }
    if (product->contract.part.count > 0) {
        slc_json_set(record, "part", part_json(product));
    }
    if (report->layout_fibers > 0) {
        slc_json_set_count(record, "fibers", report->layout_fibers);
        slc_json_set_real(record, "fibers_possible", report->layout_fibers_possible);
    }
    if (product->contract.output != NULL) {
        slc_json_set(record, "dims", slc_json_dims(report->order, report->dims));
        slc_json_set(record, "sorted", json_boolean(!report->ordered));
        slc_json_set_count(record, "result_nnz_most", report->sums_most);
    }
    if (!dry_run) {
        set_run_json(product, record);
        set_result_json(product, record);
    }
    return json_out_print(record, err);
}

/* Prints the device to standard error, because standard output contains only the number. Prints a
 * note if the device was not used. */
static void print_device_of_number(const struct product *product)
{
    const struct slc_error *refused = &product->device.why;
    struct fault_text why;

    if (product->args.verbose && !product->args.build.quiet) {
        print_device(product, stderr);
    } else if (refused->status != SLC_OK) {
        console_note("GPU not used: %s", fault_text(&why, refused));
    }
}

/* Times per nonzero, divided by the time to decode a nonzero. ORDERED_DECODINGS: sums arrive in
 * order and are written at once. SORTED_DECODINGS: sums must be sorted. */
#define ORDERED_DECODINGS 20.0
#define SORTED_DECODINGS  150.0

static enum slc_status print_time_forecast(const struct product *product, struct slc_error *err)
{
    const struct slc_contract_report *report = &product->report;
    const bool sorts = product->contract.output != NULL && !report->ordered;
    const struct forecast_product expected = {.store = product->contract.store,
                                              .layout = report->layout,
                                              .mode = report->layout_mode,
                                              .output = product->contract.output,
                                              .memory_bytes = product->contract.memory_bytes,
                                              .threads = report->threads > 0 ? report->threads : 1,
                                              .decodings =
                                                  sorts ? SORTED_DECODINGS : ORDERED_DECODINGS};

    /* The forecast covers only whole products on the CPU. */
    return product->choice.device != NULL || product->contract.part.count > 0
               ? SLC_OK
               : forecast_product(&expected, err);
}

static enum slc_status print_result(const struct product *product, struct slc_error *err)
{
    const struct arguments *args = &product->args;
    const bool is_number = product->contract.output == NULL;

    if (args->json) {
        return print_json(product, err);
    }
    if (args->dry_run) {
        print_dry_run(product);
        return print_time_forecast(product, err);
    }
    if (is_number) {
        char number[32];

        number[slc_format_f64(number, product->report.scalar)] = '\0';
        printf("%s\n", number);
        print_device_of_number(product);
    } else if (!args->build.quiet) {
        print_store_report(product);
    }
    if (args->verbose && !args->build.quiet) {
        print_reading(product, is_number ? stderr : stdout);
    }
    return SLC_OK;
}

/* Returns the outputs that a signal must remove. */
static struct cleanup_outputs outputs_to_remove(const struct product *product)
{
    const struct slc_contract_options *contract = &product->contract;
    struct cleanup_outputs outputs = {.count = 0};

    if (contract->output != NULL && !product->args.dry_run) {
        outputs.paths[outputs.count++] = contract->output;
    }
    for (unsigned r = 0; r < contract->more_count && outputs.count > 0; r++) {
        outputs.paths[outputs.count++] = contract->more[r].output;
    }
    return outputs;
}

/* Checks the outputs of a dry run, which must fail if a run would fail. */
static enum slc_status check_outputs(const struct product *product, struct slc_error *err)
{
    const struct slc_contract_options *contract = &product->contract;

    for (unsigned r = 0; contract->dry_run && contract->output != NULL && r <= contract->more_count;
         r++) {
        SLC_TRY(slc_build_folder_check(slc_files_system(),
                                       r == 0 ? contract->output : contract->more[r - 1].output,
                                       contract->overwrite, err));
    }
    return SLC_OK;
}

static enum slc_status
multiply(struct product *product, const struct operands *operands, struct slc_error *err)
{
    SLC_TRY(fill_options(product, operands, err));
    const struct cleanup_outputs outputs = outputs_to_remove(product);
    SLC_TRY(build_start_all(&product->args.build, &outputs, err));
    /* The device is opened after the signal thread has started, so that the threads of the device
     * inherit blocked signals. */
    SLC_TRY(fill_products(product, err));
    SLC_TRY(slc_contract_on_device(&product->contract, &product->choice, &product->device,
                                   &product->report, err));
    return check_outputs(product, err);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct product product = {.seconds = 0};
    struct slc_error err = SLC_ERROR_INIT;
    const uint64_t start_ns = slc_clock_ns();
    struct operands operands;
    int code = 0;

    if (!command_begin(command, argc, argv, &product.args, &operands, &code)) {
        return code;
    }
    enum slc_status status = multiply(&product, &operands, &err);
    if (status == SLC_OK) {
        product.seconds = slc_seconds_since(start_ns);
        console_clear_live();
        status = print_result(&product, &err);
    }
    if (status != SLC_OK) {
        code = console_error(&err);
    }
    slc_products_drop(&product.choice);
    ttv_batch_destroy(&product.batch);
    return code;
}

const struct command command_ttv = {
    .name = "ttv",
    .summary = "multiply a store with vectors (tensor times vector)",
    .example = "sluice ttv flights-4d.slc --mode 3 --vector v.npy flights-3d.slc",
    .operands = "X.slc [OUT.slc]",
    .operands_min = 1,
    .operands_max = 2,
    .options = options,
    .notes = "OUT.slc has the modes without a vector. With a vector for every mode the result is a "
             "number, which\nis printed on standard output, and OUT.slc must not be given. Sums "
             "that are zero are not stored.\nWith --schedule largest the sums are sorted.",
    .run = run,
};
