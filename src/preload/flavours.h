/* The libcurls of this process. */
#ifndef SENDONCE_PRELOAD_FLAVOURS_H
#define SENDONCE_PRELOAD_FLAVOURS_H

#include "base/flavour.h"

/* The position of a `curl_` name among the hooked ones, or -1. */
int flavours_hooked_index(const char *name);

/* The known libcurl whose code holds this address. Never walks the loader's list. */
const struct flavour *flavours_known_containing(unsigned long address);
/* The same, but looks for libcurls loaded since when the address is in none of the known. */
const struct flavour *flavours_containing(unsigned long address);
/* What preload_api.flavour_of_caller promises. */
const struct flavour *flavours_of_caller(const void *caller);
/* Is there any libcurl at all? */
int flavours_any(void);

/* Objects may be coming: what is remembered about callers counts no longer. */
void flavours_forget_callers(void);
/* dlsym gave a hook of this libcurl to code at `caller`. */
void flavours_note_handout(unsigned long caller, const struct flavour *flavour);

#endif
