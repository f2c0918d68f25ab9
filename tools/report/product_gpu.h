/* Reports the tiles that a GPU multiplies for ttv and ttm (engine/product/products.h): the device,
 * the device memory, and the work of GPU and CPU. */
#ifndef SLC_TOOLS_PRODUCT_GPU_H
#define SLC_TOOLS_PRODUCT_GPU_H

#include "engine/product/products.h"
#include "tools/session/session.h"

#include <jansson.h>
#include <stdio.h>

/* Chooses the device that the options request. Ownership and errors: as for slc_products_choose. */
enum slc_status product_gpu_choose(const struct session_options *options,
                                   struct slc_products_choice *choice,
                                   struct slc_error *err) SLC_NODISCARD;

/* Data of the report. */
struct product_gpu {
    const struct slc_products_choice *choice;
    const struct slc_error *refused; /* reason if the device is not used */
    const struct slc_plan_gpu *plan;
    unsigned threads;                         /* threads that multiply in addition to the GPU */
    const struct slc_products_report *report; /* NULL: before the run */
};

/* Prints "device", and "shares" after a run, or the reason if no device is used. Prints nothing for
 * the CPU alone. */
void product_gpu_print(const struct product_gpu *product, FILE *out);
/* Returns the data that product_gpu_print prints as an object; null if no device is used. */
json_t *product_gpu_json(const struct product_gpu *product);

#endif
