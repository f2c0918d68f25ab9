/* Restricts a contraction to a part of its result. */
#include "engine/product/contract_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum slc_status slc_contract_open_part(struct slc_contract_run *c, struct slc_error *err)
{
    const struct slc_contract_options *options = c->options;
    uint32_t kept = 0;

    if (options->part.count == 0) {
        return SLC_OK;
    }
    if (c->job.kept_count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "the result is a number, which has no parts");
    }
    if (options->products != NULL || options->stream == NULL) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "only the CPU computes parts of a product");
    }
    for (unsigned k = 0; k < c->job.kept_count; k++) {
        kept |= UINT32_C(1) << c->job.kept_mode[k];
    }
    SLC_TRY(slc_part_open(&c->part, c->reader, kept, options->part, err));
    c->job.part = &c->part;
    options->stream->part = &c->part;
    c->report->part_blocks = c->part.block_count;
    c->report->part_bytes = c->part.bytes;
    for (unsigned r = 0; r < c->job.results; r++) {
        slc_hash_stream_begin(&c->hashes[r]);
    }
    return SLC_OK;
}

void slc_contract_close_part(struct slc_contract_run *c)
{
    slc_part_close(&c->part);
    if (c->options->stream != NULL) {
        c->options->stream->part = NULL;
    }
}

void slc_contract_record_part(const struct slc_contract_run *run,
                              unsigned result,
                              struct slc_store_origin *origin)
{
    static const char *const fibers[] = {"auto", "none", "given"};
    const struct slc_contract_options *options = run->options;
    struct slc_part_product product = {.operation = "ttv",
                                       .store = &run->store,
                                       .reader = run->reader,
                                       .operands = slc_hash_stream_end(&run->hashes[result])};
    struct slc_part_record record;
    char lines[256];

    if (run->job.part == NULL) {
        return;
    }
    (void)snprintf(lines, sizeof lines,
                   "codec=%s\nrelabel=%s\nblock bytes=%" PRIu64 "\nfibers=%s\nfiber mode=%u\n"
                   "fiber bits=%u\n",
                   slc_codec_name(options->codec),
                   options->relabel == SLC_RELABEL_NONE ? "none" : "frequency",
                   options->block_bytes != 0 ? options->block_bytes : SLC_DEFAULT_BLOCK_BYTES,
                   fibers[run->fibers], run->run.mode + 1, run->run.bits);
    product.options = lines;
    for (unsigned k = 0; k < run->job.vector_count; k++) {
        product.modes |= UINT32_C(1) << run->job.vector_mode[k];
    }
    slc_part_record_set(&record, &product, &run->part);
    memcpy(origin->part, record.text, sizeof origin->part);
}
