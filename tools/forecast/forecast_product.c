/* See forecast_product.h. */
#include "tools/forecast/forecast_product.h"

#include "convert/forecast/store_trial.h"

#define TRIAL_SECONDS 0.3
/* Bytes a second of memory that is filled, and moved to a file, where no drive was tried. */
#define UNTRIED_RATE 1e9
/* What begin, syncs and end take. */
#define ALWAYS_SECONDS 0.05

static enum slc_status judge_time(const struct forecast_product *product,
                                  const struct slc_reader *reader,
                                  struct forecast *forecast,
                                  struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct slc_store_trial trial;
    const enum slc_status status = slc_store_trial(NULL, reader, TRIAL_SECONDS, NULL, &trial, err);

    if (status != SLC_OK || trial.nnz == 0) {
        return status;
    }
    forecast_try_drives(forecast, slc_reader_path(reader));
    forecast_phase(forecast, "begin and end");
    forecast_part(forecast, "opening", ALWAYS_SECONDS);
    forecast_phase(forecast, "multiply");
    forecast_part(forecast, "reading",
                  forecast->read_rate > 0 ? (double)info->file_bytes / forecast->read_rate : 0);
    forecast_part(forecast, "computing",
                  product->decodings * trial.decode_seconds * (double)info->nnz / product->threads);
    forecast_part(forecast, "writing",
                  (double)product->written_bytes /
                      (forecast->write_rate > 0 ? forecast->write_rate : UNTRIED_RATE));
    return SLC_OK;
}

enum slc_status forecast_product_judge(const struct forecast_product *product,
                                       struct forecast *forecast,
                                       struct slc_error *err)
{
    const uint64_t memory = product->memory_bytes != 0 ? product->memory_bytes : UINT64_MAX;
    struct slc_store store;
    struct slc_reader *reader = NULL;
    enum slc_status status;

    *forecast = (struct forecast){.command = "product",
                                  .brief = product->brief,
                                  .output = product->output,
                                  .final_bytes = product->written_bytes};
    if (product->reader != NULL) {
        return judge_time(product, product->reader, forecast, err);
    }
    status = slc_store_open_within(slc_files_system(), product->store, memory, &store, err);
    if (status != SLC_OK) {
        return status;
    }
    if (product->layout != SLC_LAYOUT_BLCO) {
        status =
            slc_store_open_layout(&store, product->layout, product->mode, memory, &reader, err);
    }
    if (status == SLC_OK) {
        status = judge_time(product, reader != NULL ? reader : store.reader, forecast, err);
    }
    slc_store_close_layout(&store, reader);
    slc_store_close(&store);
    return status;
}

enum slc_status forecast_product(const struct forecast_product *product, struct slc_error *err)
{
    struct forecast forecast;
    enum slc_status status = forecast_product_judge(product, &forecast, err);

    if (status != SLC_OK || forecast.phases == 0) {
        return status;
    }
    SLC_TRY(forecast_check_room(&forecast, err));
    forecast_print_time(&forecast);
    return SLC_OK;
}
