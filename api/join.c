/* Public function that joins the parts of a product. */
#include "engine/product/join/join.h"
#include "api/call.h"
#include "sluice/compute.h"

enum sluice_status sluice_join(uint32_t count,
                               const char *const *paths,
                               const char *output,
                               const struct sluice_join_options *options,
                               struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"paths", API_ARRAY(paths, count)}, {"output", output});
    struct sluice_join_options known = {0};
    struct api_run run = {.phase = NULL};
    struct slc_join_options join = {.parts = paths, .count = count, .output = output};
    struct slc_join_report report;
    enum slc_status status = API_READ_OPTIONS(sluice_join_options, &known, options, err);

    for (uint32_t i = 0; i < count && status == SLC_OK; i++) {
        if (paths[i] == NULL) {
            status = slc_fail(err, SLC_ERR_USAGE, "path %u is NULL", i);
        }
    }
    if (status == SLC_OK) {
        api_run_init(&run, &known.run);
        API_SET_RUN(&join, &run);
        join.temp_folder = known.temp_folder;
        join.max_temp = known.max_temp_bytes;
        join.overwrite = known.overwrite != 0;
        join.threads = api_run_threads(&run);
        status = slc_join(&join, &report, err);
    }
    return api_return(status, err, ret_err);
}
