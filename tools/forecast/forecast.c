#include "tools/forecast/forecast.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/forecast/store_trial.h"
#include "report/json_parts.h"
#include "storage/file/block_file.h"
#include "storage/file/files.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Limits of a drive test: total bytes, bytes per call, and seconds. */
#define TRIAL_BYTES   (UINT64_C(32) << 20)
#define TRIAL_SECONDS 0.2
/* Minimum number of bytes for a test of the drives at the start of a run. A run over fewer bytes
 * takes less time than the test, or reads from the page cache. */
#define BRIEF_BYTES_MIN (UINT64_C(256) << 20)
enum { TRIAL_PIECE_BYTES = 1 << 20, PATH_BYTES = 4096 };

void forecast_add_buffer(struct forecast *forecast,
                         const char *name,
                         uint64_t bytes,
                         const char *what)
{
    if (bytes > 0 && forecast->buffers < FORECAST_BUFFERS) {
        forecast->buffer[forecast->buffers].name = name;
        forecast->buffer[forecast->buffers].bytes = bytes;
        forecast->buffer[forecast->buffers].what = what;
        forecast->buffers++;
    }
}

void forecast_add_phase(struct forecast *forecast, const char *name)
{
    if (forecast->phases < FORECAST_PHASES) {
        forecast->phase[forecast->phases].name = name;
        forecast->phases++;
    }
}

void forecast_add_part(struct forecast *forecast, const char *what, double seconds)
{
    const unsigned last = forecast->phases - 1;

    if (seconds > 0 && forecast->phase[last].parts < FORECAST_PARTS) {
        forecast->phase[last].part[forecast->phase[last].parts++] =
            (struct forecast_part){what, seconds};
    }
}

/* Sets `folder` to the folder that contains, or would contain, `path`. */
static void folder_of(const char *path, char folder[PATH_BYTES])
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    (void)snprintf(folder, PATH_BYTES, "%.*s", (int)slc_min_u64(length, PATH_BYTES - 1), path);
    if (length == 0) {
        (void)snprintf(folder, PATH_BYTES, ".");
    }
}

enum slc_status forecast_try_reading(const struct slc_files *files,
                                     const char *path,
                                     uint64_t most,
                                     double *rate,
                                     struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    struct slc_file_stat stat = {.bytes = 0};
    struct slc_buffer piece = SLC_BUFFER_INIT;
    uint64_t done = 0, end = 0;
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;
    const struct slc_block_part *part = &file.parts[0];
    int direct = -1;
    enum slc_status status = slc_buffer_create(&piece, TRIAL_PIECE_BYTES, SLC_PAGES_SMALL, err);

    *rate = 0;
    SLC_THEN(status,
             slc_block_file_open(files, path, "opening for a test of the drive", &file, err));
    SLC_THEN(status,
             slc_file_open_direct(files, part->fd, part->path, O_RDONLY | O_CLOEXEC, &direct, err));
    if (status == SLC_OK && files->stat_fd(files->self, part->fd, &stat) == 0) {
        end = slc_min_u64(slc_min_u64(stat.bytes, most), TRIAL_BYTES) / TRIAL_PIECE_BYTES *
              TRIAL_PIECE_BYTES;
    }
    while (status == SLC_OK && done < end && slc_seconds_since(start_ns) < TRIAL_SECONDS) {
        status = slc_file_read_pages(files, direct, part->fd, part->path, piece.data,
                                     TRIAL_PIECE_BYTES, done, err);
        done += TRIAL_PIECE_BYTES;
    }
    if (status == SLC_OK && done > 0) {
        *rate = (double)done / (slc_seconds_since(start_ns) + 1e-9);
    }
    if (direct >= 0) {
        (void)files->close(files->self, direct);
    }
    slc_block_file_close(&file);
    slc_buffer_destroy(&piece);
    return status;
}

/* Measures the write speed with an unnamed file in the folder, synced at the end. */
static double try_writing(const char *folder, const void *piece)
{
    const struct slc_files *files = slc_files_system();
    const int fd = files->open(files->self, folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const uint64_t start_ns = slc_clock_ns();
    uint64_t done = 0;
    double rate = 0;

    if (fd < 0) {
        return 0;
    }
    while (done < TRIAL_BYTES && slc_seconds_since(start_ns) < TRIAL_SECONDS &&
           slc_file_write_at(files, fd, folder, piece, TRIAL_PIECE_BYTES, done, NULL) == SLC_OK) {
        done += TRIAL_PIECE_BYTES;
    }
    if (done > 0 && files->sync(files->self, fd) >= 0) {
        rate = (double)done / (slc_seconds_since(start_ns) + 1e-9);
    }
    (void)files->close(files->self, fd);
    return rate;
}

void forecast_try_drives(struct forecast *forecast, const char *input)
{
    struct slc_buffer piece = SLC_BUFFER_INIT;
    char folder[PATH_BYTES];

    if ((forecast->brief && forecast->read_bytes + forecast->written_bytes < BRIEF_BYTES_MIN) ||
        slc_buffer_create(&piece, TRIAL_PIECE_BYTES, SLC_PAGES_SMALL, NULL) != SLC_OK) {
        return;
    }
    memset(piece.data, 0x3c, TRIAL_PIECE_BYTES);
    if (forecast->output != NULL) {
        folder_of(forecast->output, folder);
        forecast->write_rate = try_writing(folder, piece.data);
    }
    if (input != NULL) {
        /* If the input cannot be read, the command itself reports the error. */
        (void)(forecast_try_reading(slc_files_system(), input, UINT64_MAX, &forecast->read_rate,
                                    NULL) == SLC_OK);
    }
    slc_buffer_destroy(&piece);
}

static uint64_t free_in(const char *folder, uint64_t *device)
{
    const struct slc_files *files = slc_files_system();
    struct slc_file_stat stat;
    uint64_t bytes;

    *device = 0;
    if (files->stat_path(files->self, folder, &stat) < 0 ||
        files->free_bytes(files->self, folder, &bytes) < 0) {
        return UINT64_MAX;
    }
    *device = stat.device;
    return bytes;
}

enum slc_status forecast_check_space(struct forecast *forecast, struct slc_error *err)
{
    char folder[PATH_BYTES];
    const char *temp = forecast->temp_folder != NULL ? forecast->temp_folder : folder;
    const uint64_t final_bytes = slc_max_u64(forecast->final_bytes, forecast->final_most_bytes);
    const uint64_t temp_bytes = slc_max_u64(forecast->temp_bytes, forecast->temp_most_bytes);
    uint64_t device, temp_device, together;
    struct format_text a, b;

    forecast->free_bytes = forecast->temp_free_bytes = UINT64_MAX;
    if (forecast->output == NULL) {
        return SLC_OK;
    }
    folder_of(forecast->output, folder);
    forecast->free_bytes = free_in(folder, &device);
    forecast->temp_free_bytes = free_in(temp, &temp_device);
    together = final_bytes + (device == temp_device ? temp_bytes : 0);
    if (together > forecast->free_bytes) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "the file system of %.300s has %s free, but about %s are needed: free some "
                        "space there, or choose another location%s",
                        folder, format_data(&a, (double)forecast->free_bytes),
                        format_data(&b, (double)together),
                        device == temp_device && temp_bytes > 0
                            ? " (--temp-dir moves the temporary file)"
                            : "");
    }
    if (temp_bytes > forecast->temp_free_bytes) {
        return slc_fail(
            err, SLC_ERR_BUDGET,
            "the file system of %.300s has %s free, but a temporary file of about %s is needed: "
            "free some space there, choose another --temp-dir, or raise --memory",
            temp, format_data(&a, (double)forecast->temp_free_bytes),
            format_data(&b, (double)temp_bytes));
    }
    return SLC_OK;
}

double forecast_seconds(const struct forecast *forecast, const char **bottleneck)
{
    double seconds = forecast->phases > 0 ? 0 : -1, most = 0;

    *bottleneck = NULL;
    for (unsigned p = 0; p < forecast->phases; p++) {
        double longest = 0;

        for (unsigned k = 0; k < forecast->phase[p].parts; k++) {
            const struct forecast_part *part = &forecast->phase[p].part[k];

            longest = part->seconds > longest ? part->seconds : longest;
            if (part->seconds > most) {
                most = part->seconds;
                *bottleneck = part->what;
            }
        }
        seconds += longest;
    }
    return seconds;
}

void forecast_print_time(const struct forecast *forecast)
{
    struct format_text a, b;
    const char *bottleneck;
    const double seconds = forecast_seconds(forecast, &bottleneck);

    if (seconds < 0) {
        printf("  %-12s not estimated\n", "time");
        return;
    }
    printf("  %-12s about %s", "time", format_seconds(&a, seconds));
    for (unsigned p = 0; p < forecast->phases; p++) {
        printf("%s%s", p == 0 ? ": " : "; ", forecast->phase[p].name);
        for (unsigned k = 0; k < forecast->phase[p].parts; k++) {
            const struct forecast_part *part = &forecast->phase[p].part[k];

            printf("%s%s %s", k == 0 ? " (" : ", ", part->what, format_seconds(&a, part->seconds));
        }
        printf("%s", forecast->phase[p].parts > 0 ? ")" : "");
    }
    printf("\n");
    if (bottleneck != NULL) {
        printf("  %-12s %s", "bottleneck", bottleneck);
        if (forecast->read_rate > 0) {
            printf("; the drive reads %s/s", format_data(&a, forecast->read_rate));
        }
        if (forecast->write_rate > 0) {
            printf("%s %s/s", forecast->read_rate > 0 ? ", writes" : "; the drive writes",
                   format_data(&b, forecast->write_rate));
        }
        printf("\n");
    }
}

static void print_forecast(const struct forecast *forecast)
{
    struct format_text a, b;

    printf("  %-12s expected %s", "memory", format_memory(&a, forecast->memory_bytes));
    if (forecast->memory_most_bytes > forecast->memory_bytes) {
        printf(", at most %s", format_memory(&a, forecast->memory_most_bytes));
    }
    printf(", of a budget of %s\n", format_memory(&b, forecast->budget_bytes));
    for (unsigned i = 0; i < forecast->buffers; i++) {
        printf("    %-12s %-9s  %s\n", forecast->buffer[i].name,
               format_memory(&a, forecast->buffer[i].bytes), forecast->buffer[i].what);
    }
    if (forecast->output != NULL) {
        printf("  %-12s about %s for %s", "disk", format_data(&a, (double)forecast->final_bytes),
               forecast->output);
        if (forecast->final_most_bytes > forecast->final_bytes) {
            printf(" (at most %s)", format_data(&a, (double)forecast->final_most_bytes));
        }
        if (forecast->temp_bytes > 0) {
            printf(", %s in temporary files", format_data(&a, (double)forecast->temp_bytes));
        }
        if (forecast->temp_most_bytes > forecast->temp_bytes) {
            printf(" (at most %s)", format_data(&a, (double)forecast->temp_most_bytes));
        }
        if (forecast->free_bytes != UINT64_MAX) {
            printf("; %s free", format_data(&b, (double)forecast->free_bytes));
        }
        printf("\n");
    }
    printf("  %-12s %s read", "bytes", format_data(&a, (double)forecast->read_bytes));
    printf(", %s written\n", format_data(&b, (double)forecast->written_bytes));
    printf("  %-12s %s\n", "passes", forecast->passes);
    forecast_print_time(forecast);
}

static json_t *phases_json(const struct forecast *forecast)
{
    json_t *phases = json_array();

    for (unsigned p = 0; p < forecast->phases; p++) {
        json_t *parts = json_object();

        for (unsigned k = 0; k < forecast->phase[p].parts; k++) {
            slc_json_set_real(parts, forecast->phase[p].part[k].what,
                              forecast->phase[p].part[k].seconds);
        }
        (void)json_array_append_new(
            phases, json_pack("{s:s, s:o}", "name", forecast->phase[p].name, "seconds", parts));
    }
    return phases;
}

static json_t *to_json(const struct forecast *forecast)
{
    const char *bottleneck;
    const double seconds = forecast_seconds(forecast, &bottleneck);
    json_t *buffers = json_object();
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "schema", "sluice-forecast-1", "command",
        forecast->command, "memory_bytes", (json_int_t)forecast->memory_bytes, "budget_bytes",
        (json_int_t)forecast->budget_bytes, "final_bytes", (json_int_t)forecast->final_bytes,
        "temp_bytes", (json_int_t)forecast->temp_bytes, "read_bytes",
        (json_int_t)forecast->read_bytes, "written_bytes", (json_int_t)forecast->written_bytes);

    slc_json_set_count(object, "memory_most_bytes",
                       slc_max_u64(forecast->memory_bytes, forecast->memory_most_bytes));
    slc_json_set_count(object, "final_most_bytes",
                       slc_max_u64(forecast->final_bytes, forecast->final_most_bytes));
    slc_json_set_count(object, "temp_most_bytes",
                       slc_max_u64(forecast->temp_bytes, forecast->temp_most_bytes));
    for (unsigned i = 0; i < forecast->buffers; i++) {
        slc_json_set_count(buffers, forecast->buffer[i].name, forecast->buffer[i].bytes);
    }
    slc_json_set(object, "buffers", buffers);
    slc_json_set_text(object, "passes", forecast->passes);
    slc_json_set(object, "phases", phases_json(forecast));
    slc_json_set_known_real(object, "seconds", seconds);
    slc_json_set_text(object, "bottleneck", bottleneck);
    slc_json_set_known_count(object, "free_bytes", forecast->free_bytes);
    return object;
}

enum slc_status forecast_report(const struct forecast *forecast, bool json, struct slc_error *err)
{
    if (json) {
        return json_out_print(to_json(forecast), err);
    }
    print_forecast(forecast);
    return SLC_OK;
}

enum slc_status forecast_dry_run(
    struct forecast *forecast, bool json, struct slc_error *err, const char *format, ...)
{
    va_list list;

    SLC_TRY(forecast_check_space(forecast, err));
    va_start(list, format);
    if (!json) {
        (void)vprintf(format, list);
    }
    va_end(list);
    return forecast_report(forecast, json, err);
}

#define DECODING_SECONDS 0.3
/* Assumed bytes per second for writing, if the drive was not tested. */
#define UNTRIED_RATE 1e9
/* Seconds to start, to sync and to finish. */
#define ALWAYS_SECONDS 0.05

static enum slc_status estimate_times(const struct forecast_product *product,
                                      const struct slc_reader *reader,
                                      struct forecast *forecast,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct slc_store_trial trial;
    const enum slc_status status = slc_store_trial(reader, DECODING_SECONDS, NULL, &trial, err);

    if (status != SLC_OK || trial.nnz == 0) {
        return status;
    }
    forecast_try_drives(forecast, slc_reader_path(reader));
    forecast_add_phase(forecast, "begin and end");
    forecast_add_part(forecast, "opening", ALWAYS_SECONDS);
    forecast_add_phase(forecast, "multiply");
    forecast_add_part(forecast, "reading",
                      slc_ratio((double)info->file_bytes, forecast->read_rate));
    forecast_add_part(forecast, "computing",
                      product->decodings * trial.decode_seconds * (double)info->nnz /
                          product->threads);
    forecast_add_part(forecast, "writing",
                      (double)product->written_bytes /
                          (forecast->write_rate > 0 ? forecast->write_rate : UNTRIED_RATE));
    return SLC_OK;
}

enum slc_status forecast_product_estimate(const struct forecast_product *product,
                                          struct forecast *forecast,
                                          struct slc_error *err)
{
    const uint64_t memory = product->memory_bytes != 0 ? product->memory_bytes : UINT64_MAX;
    struct slc_store store;
    struct slc_reader *reader = NULL;
    enum slc_status status = SLC_OK;

    *forecast = (struct forecast){.command = "product",
                                  .brief = product->brief,
                                  .output = product->output,
                                  .final_bytes = product->written_bytes};
    if (product->reader != NULL) {
        return estimate_times(product, product->reader, forecast, err);
    }
    SLC_TRY(slc_store_open_within(slc_files_system(), product->store, memory, &store, err));
    if (product->layout != SLC_LAYOUT_BLCO) {
        status =
            slc_store_open_layout(&store, product->layout, product->mode, memory, &reader, err);
    }
    SLC_THEN(status,
             estimate_times(product, reader != NULL ? reader : store.reader, forecast, err));
    slc_store_close_layout(&store, reader);
    slc_store_close(&store);
    return status;
}

enum slc_status forecast_product(const struct forecast_product *product, struct slc_error *err)
{
    struct forecast forecast;
    enum slc_status status = forecast_product_estimate(product, &forecast, err);

    if (status != SLC_OK || forecast.phases == 0) {
        return status;
    }
    SLC_TRY(forecast_check_space(&forecast, err));
    forecast_print_time(&forecast);
    return SLC_OK;
}
