/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Data that leak.sh looks for.
 */
#ifndef LEAK_CANARY_H
#define LEAK_CANARY_H

#define LEAK_CANARY       "the-canary-sings-in-clear-text\n"
#define LEAK_CANARY_BYTES 31

#endif
