/* Version of sluice, set by meson.build. */
#ifndef SLC_BASE_VERSION_H
#define SLC_BASE_VERSION_H

#ifndef SLC_VERSION
#error "SLC_VERSION is defined by meson.build"
#endif

#endif
