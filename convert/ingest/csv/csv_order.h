/* Order of the strings of a column that is sorted. Numbers come first, by value. Other strings
 * follow byte by byte, except that digits within them compare as whole numbers: "week 9" is before
 * "week 10". Strings that are equal in this order, such as "1" and "01", are in the order of their
 * bytes. */
#ifndef SLC_CONVERT_CSV_ORDER_H
#define SLC_CONVERT_CSV_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Returns a value below 0, 0 or above 0 if a is before, equal to or after b. */
int slc_csv_order(const char *a, size_t a_bytes, const char *b, size_t b_bytes);

/* Returns a number with which most strings can be compared: if it is smaller for a than for b, a is
 * before b; if it is equal, slc_csv_order decides. */
uint64_t slc_csv_order_prefix(const char *text, size_t bytes);

#endif
