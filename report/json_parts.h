/*
 * Members that records of runs, stores and benchmarks share. Functions return NULL if there is no
 * memory.
 */
#ifndef SLC_REPORT_JSON_PARTS_H
#define SLC_REPORT_JSON_PARTS_H

#include <jansson.h>
#include <stdint.h>

json_t *slc_json_versions(void); /* of sluice, compiler and system */
json_t *slc_json_machine(void);  /* processors, cores, NUMA nodes, caches, memory */
json_t *slc_json_dims(unsigned order, const uint64_t *dims);
json_t *slc_json_modes(uint32_t modes); /* the modes of a set, counted from 1, ascending */
json_t *slc_json_hex(
    uint64_t number); /* 16 hexadecimal digits, because a double cannot represent the number */

/* Set members of an object. Ownership: `value` is passed to the object. If there is no memory, the
 * member is not set. */
void slc_json_set(json_t *object, const char *name, json_t *value);
void slc_json_set_count(json_t *object, const char *name, uint64_t number);
void slc_json_set_real(json_t *object, const char *name, double number);
void slc_json_set_text(json_t *object, const char *name, const char *text); /* NULL: null */
/* Set null for a number that is not known: UINT64_MAX, or a negative real. */
void slc_json_set_known_count(json_t *object, const char *name, uint64_t number);
void slc_json_set_known_real(json_t *object, const char *name, double number);

#endif
