/* The table of kernels; see roofline_kernels.h. */
#include "tools/bench/roofline/roofline_kernels.h"

#include "base/error/error.h"
#include "tools/bench/measure/record.h"
#include "tools/progress/console.h"

#include <stdio.h>
#include <string.h>

const struct roofline_kernel roofline_kernels[] = {
    {"mttkrp-copies", roofline_mttkrp_copies},
    {"mttkrp-stream", roofline_mttkrp_stream},
    {"sptv", roofline_sptv},
    {"ttm-fiber", roofline_ttm_fiber},
    {"ttm-nonzero", roofline_ttm_nonzero},
};
const unsigned roofline_kernel_count = sizeof roofline_kernels / sizeof roofline_kernels[0];

const struct roofline_kernel roofline_device_kernels[] = {
    {"mttkrp", roofline_device_mttkrp},
    {"sptv", roofline_device_product},
    {"ttm-fibers", roofline_device_product},
    {"ttm-nonzeros", roofline_device_product},
};
const unsigned roofline_device_kernel_count =
    sizeof roofline_device_kernels / sizeof roofline_device_kernels[0];

_Static_assert(sizeof roofline_kernels / sizeof roofline_kernels[0] <= ROOFLINE_KERNELS_MAX,
               "raise ROOFLINE_KERNELS_MAX");

void roofline_name_tensor(const struct operands *operands, unsigned which, char *name, size_t bytes)
{
    const char *path = operands->text[which];
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
    size_t length = strlen(base);

    for (unsigned i = 0; i < operands->count; i++) {
        const char *other = strrchr(operands->text[i], '/');

        if (i != which && strcmp(other != NULL ? other + 1 : operands->text[i], base) == 0) {
            base = path;
            length = strlen(path);
        }
    }
    if (length > 4 && strcmp(base + length - 4, ".slc") == 0) {
        length -= 4;
    }
    (void)snprintf(name, bytes, "%.*s", (int)length, base);
}

enum slc_status roofline_leave_out(const struct roofline_job *job,
                                   unsigned first,
                                   unsigned count,
                                   enum slc_status status,
                                   struct slc_error *err)
{
    char mode[32];

    if (status != SLC_ERR_BUDGET) {
        return status;
    }
    for (unsigned n = first; n < first + count; n++) {
        json_t *item = json_object();

        slc_json_set_text(item, "tensor", job->tensor);
        slc_json_set_text(item, "case", job->case_name);
        slc_json_set_text(item, "kernel", job->kernel);
        slc_json_set_count(item, "rank", job->rank);
        slc_json_set_count(item, "mode", n + 1);
        slc_json_set_text(item, "why", err->message);
        (void)json_array_append_new(job->left_out, item);
    }
    (void)snprintf(mode, sizeof mode, " in mode %u", first + 1);
    console_note("%s (%s): %s at rank %u is left out%s: %s", job->tensor, job->case_name,
                 job->kernel, job->rank, count == 1 ? mode : "", err->message);
    slc_error_clear(err);
    return SLC_OK;
}
