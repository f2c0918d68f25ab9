/* Any bytes as a .npy file. */
#include "fuzz_store.h"

#include "storage/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    for (int variant = 0; variant < 2; variant++) {
        struct slc_matrix matrix = {0};
        struct slc_error err = SLC_ERROR_INIT;

        fuzz_write(fuzz_path("fuzz.npy"), data, bytes);
        if (slc_npy_read(NULL, fuzz_path("fuzz.npy"), variant ? SLC_F32 : SLC_F64, variant ? 3 : 0,
                         variant ? 2 : 0, &matrix, &err) == SLC_OK) {
            double sum = 0;

            for (uint64_t i = 0; i < matrix.rows; i++) {
                for (uint32_t r = 0; r < matrix.cols; r++) {
                    sum += slc_matrix_get(&matrix, i, r);
                }
            }
            if (matrix.rows > 0) {
                slc_matrix_set(&matrix, 0, 0, sum);
            }
        }
        slc_matrix_destroy(&matrix);
    }
    return 0;
}
