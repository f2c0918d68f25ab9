#include "tools/report/version_info.h"

#include "base/error/error.h"
#include "base/version.h"
#include "cpu/cpu.h"
#include "cpu/dense/dense.h"
#include "gpu/gpu.h"
#include "report/json_parts.h"

#include <archive.h>
#include <bzlib.h>
#include <lapacke.h>
#include <lz4.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

enum { VERSION_BYTES = 48 };

/* Returns `text` up to the first of the characters `ends`. */
static json_t *text_until(const char *text, const char *ends)
{
    return json_stringn(text, strcspn(text, ends));
}

/* A `built` of "unknown" or a `running` of NULL means that the version is unknown. */
static void add_library(json_t *list, const char *name, const char *built, json_t *running)
{
    (void)json_array_append_new(
        list, json_pack("{s:s, s:o, s:o}", "name", name, "built_with",
                        strcmp(built, "unknown") != 0 ? json_string(built) : json_null(),
                        "running_with", running != NULL ? running : json_null()));
}

/* Returns the second word of the configuration of OpenBLAS, which is the version, as in "OpenBLAS
 * 0.3.21 DYNAMIC_ARCH .. Haswell MAX_THREADS=64". */
static json_t *blas_running(void)
{
    const char *blank = strchr(slc_dense_library(), ' ');

    return blank != NULL ? text_until(blank + 1, " ") : NULL;
}

static json_t *lapack_running(void)
{
    lapack_int major = 0, minor = 0, patch = 0;

    LAPACKE_ilaver(&major, &minor, &patch);
    return json_sprintf("%d.%d.%d", (int)major, (int)minor, (int)patch);
}

/* "libarchive 3.6.2" */
static json_t *archive_running(void)
{
    const char *blank = strrchr(archive_version_string(), ' ');

    return blank != NULL ? json_string(blank + 1) : NULL;
}

/* Lists for each library the version of the headers, from the pkg-config file, and the version of
 * the library that is loaded at run time. liburing before 2.4 does not report a version, and hwloc
 * reports only the version of its interface. */
static json_t *libraries(void)
{
    const unsigned xxhash = XXH_versionNumber();
    json_t *list = json_array();

    add_library(list, SLC_BUILT_WITH_BLAS_NAME, SLC_BUILT_WITH_BLAS, blas_running());
    add_library(list, "LAPACK", SLC_BUILT_WITH_LAPACKE, lapack_running());
    add_library(list, "libzip", SLC_BUILT_WITH_LIBZIP, json_string(zip_libzip_version()));
    add_library(list, "libarchive", SLC_BUILT_WITH_LIBARCHIVE, archive_running());
    add_library(list, "zlib", SLC_BUILT_WITH_ZLIB, json_string(zlibVersion()));
    /* bzip2 has no pkg-config file; the library reports "1.0.8, 13-Jul-2019". */
    add_library(list, "bzip2", "unknown", text_until(BZ2_bzlibVersion(), ","));
    add_library(list, "liblzma", SLC_BUILT_WITH_LIBLZMA, json_string(lzma_version_string()));
    add_library(list, "zstd", SLC_BUILT_WITH_ZSTD, json_string(ZSTD_versionString()));
    add_library(list, "lz4", SLC_BUILT_WITH_LZ4, json_string(LZ4_versionString()));
    add_library(list, "xxHash", SLC_BUILT_WITH_XXHASH,
                json_sprintf("%u.%u.%u", xxhash / 10000, xxhash / 100 % 100, xxhash % 100));
    add_library(list, "jansson", SLC_BUILT_WITH_JANSSON, json_string(jansson_version_str()));
#ifdef SLC_HAVE_URING
    add_library(list, "liburing", SLC_BUILT_WITH_LIBURING, NULL);
#endif
#ifdef SLC_HAVE_HWLOC
    add_library(list, "hwloc", SLC_BUILT_WITH_HWLOC, NULL);
#endif
#ifdef __GLIBC__
    char built[VERSION_BYTES];

    (void)snprintf(built, sizeof built, "%d.%d", __GLIBC__, __GLIBC_MINOR__);
    add_library(list, "glibc", built, json_string(gnu_get_libc_version()));
#endif
    return list;
}

/* Returns the version of the CUDA toolkit, the architectures for which there is machine code, and
 * the devices or the reason why there are none. */
static json_t *cuda(void)
{
    const int toolkit = slc_gpu_toolkit();
    struct slc_error err = SLC_ERROR_INIT;
    json_t *object = json_object();
    unsigned devices = 0;
    const char *note = SLC_BUILD_GPU_MISSING;

    if (toolkit > 0) {
        note = slc_gpu_count(&devices, &err) == SLC_OK ? "" : err.message;
    }
    slc_json_set(object, "toolkit",
                 toolkit > 0 ? json_sprintf("%d.%d", toolkit / 1000, toolkit % 1000 / 10)
                             : json_null());
    slc_json_set(object, "architectures",
                 toolkit > 0 ? json_string(SLC_BUILD_GPU_ARCHS) : json_null());
    slc_json_set(object, "devices", json_integer(devices));
    slc_json_set_text(object, "note", note);
    return object;
}

static json_t *build(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", SLC_BUILD_TYPE, "optimization",
                     SLC_BUILD_OPTIMIZATION, "sanitizers", SLC_BUILD_SANITIZERS, "compiler",
                     SLC_BUILT_BY, "system", SLC_BUILT_FOR);
}

json_t *version_info_json(void)
{
    json_t *object = json_pack("{s:s, s:s}", "schema", "sluice-version-1", "sluice", SLC_VERSION);

    slc_json_set(object, "build", build());
    slc_json_set(object, "cuda", cuda());
#ifdef SLC_HAVE_URING
    slc_json_set(object, "io", json_pack("[s, s, s]", "uring", "pread", "mmap"));
#else
    slc_json_set(object, "io", json_pack("[s, s]", "pread", "mmap"));
#endif
#ifdef SLC_HAVE_HWLOC
    slc_json_set_text(object, "topology", "hwloc");
#else
    slc_json_set(object, "topology", json_null());
#endif
#ifdef SLC_HAVE_OPENMP
    slc_json_set_text(object, "threads", "OpenMP");
#else
    slc_json_set_text(object, "threads", "pool");
#endif
    slc_json_set_text(object, "kernels", slc_cpu_instruction_set());
    slc_json_set(object, "codecs", json_pack("[s, s, s]", "packed", "lz4", "blco"));
    slc_json_set(object, "compressed_input",
                 json_pack("[s, s, s, s, s]", "gzip", "bzip2", "xz", "zstd", "lz4"));
    slc_json_set(object, "libraries", libraries());
    return object;
}

/* Returns "" if the member is null or missing. */
static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

/* Prints "title: a, b, c". */
static void print_list(const char *title, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        printf("%s%s", i == 0 ? title : "", i == 0 ? ": " : ", ");
        printf("%s", json_string_value(json_array_get(list, i)));
    }
    printf("\n");
}

static void print_cuda(const json_t *object)
{
    const long long devices = (long long)json_integer_value(json_object_get(object, "devices"));

    if (text_of(object, "toolkit")[0] == '\0') {
        printf("CUDA: none: %s at build time\n", text_of(object, "note"));
    } else if (devices == 0) {
        printf("CUDA: %s for %s; %s\n", text_of(object, "toolkit"),
               text_of(object, "architectures"), text_of(object, "note"));
    } else {
        printf("CUDA: %s for %s; devices: %lld\n", text_of(object, "toolkit"),
               text_of(object, "architectures"), devices);
    }
}

/* Prints only one version if the two versions are equal or one of them is unknown. */
static void print_library(const json_t *library)
{
    const char *built = text_of(library, "built_with");
    const char *running = text_of(library, "running_with");

    printf("  %-10s ", text_of(library, "name"));
    if (running[0] == '\0') {
        printf("%s, built with\n", built);
    } else if (built[0] == '\0' || strcmp(built, running) == 0) {
        printf("%s\n", running);
    } else {
        printf("%s, built with %s\n", running, built);
    }
}

void version_info_print(const json_t *features)
{
    const json_t *built = json_object_get(features, "build");
    const json_t *list = json_object_get(features, "libraries");
    const char *sanitizers = text_of(built, "sanitizers");
    const bool no_sanitizers = strcmp(sanitizers, "none") == 0;

    printf("sluice %s\n", text_of(features, "sluice"));
    printf("build: %s, optimization %s%s%s, for %s\n", text_of(built, "type"),
           text_of(built, "optimization"), no_sanitizers ? "" : ", sanitizers ",
           no_sanitizers ? "" : sanitizers, text_of(built, "system"));
    printf("compiler: %s\n", text_of(built, "compiler"));
    print_cuda(json_object_get(features, "cuda"));
    print_list("I/O methods", json_object_get(features, "io"));
    printf("NUMA nodes and cores: %s\n",
           text_of(features, "topology")[0] != '\0' ? "by hwloc" : "unknown (built without hwloc)");
    printf("threads: %s\n", strcmp(text_of(features, "threads"), "pool") == 0
                                ? "internal pool"
                                : "OpenMP; an internal pool for passes");
    printf("kernels: %s\n", text_of(features, "kernels"));
    print_list("codecs", json_object_get(features, "codecs"));
    print_list("compressed input", json_object_get(features, "compressed_input"));
    printf("libraries:\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        print_library(json_array_get(list, i));
    }
}
