/* Makes JSON members that records of runs, stores and benchmarks share. Functions return NULL if
 * memory does not suffice. */
#ifndef SLC_REPORT_JSON_PARTS_H
#define SLC_REPORT_JSON_PARTS_H

#include <jansson.h>
#include <stdint.h>

json_t *slc_json_versions(void); /* Returns the versions of sluice, compiler, system. */
json_t *slc_json_machine(void);  /* Returns processors, NUMA nodes, caches, memory. */
json_t *slc_json_dims(unsigned order, const uint64_t *dims);
/* Returns the modes of a set in ascending order, as an array of numbers from 1. */
json_t *slc_json_modes(uint32_t modes);
/* Returns the number as 16 hexadecimal digits, because a double cannot represent every number. */
json_t *slc_json_hex(uint64_t number);

/* Set members of an object. Ownership: the object owns `value`. If memory does not suffice, the
 * member is not set. */
void slc_json_set(json_t *object, const char *name, json_t *value);
void slc_json_set_count(json_t *object, const char *name, uint64_t number);
void slc_json_set_real(json_t *object, const char *name, double number);
void slc_json_set_text(json_t *object, const char *name, const char *text); /* NULL becomes null */
/* Set a member to a number, or to null if the number is UINT64_MAX or negative, which means
 * unknown. */
void slc_json_set_known_count(json_t *object, const char *name, uint64_t number);
void slc_json_set_known_real(json_t *object, const char *name, double number);

#endif
