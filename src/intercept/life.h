/* The life of the process around us: exit and fork. */
#ifndef SENDONCE_INTERCEPT_LIFE_H
#define SENDONCE_INTERCEPT_LIFE_H

#include "base/flavour.h"

/* Before the first sending through a flavour: keeps that libcurl initialised, registers what has to
 * happen at exit (after OpenSSL registered its own, so that ours runs first) and around fork. */
void life_start(const struct flavour *flavour);

#endif
