/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What accelerator.c takes for the memory of an accelerator.  With DEVICE_ALIAS in the environment it copies
 * from and to another place, where a program has mapped the same memory: then a processor need not have the first.
 */
#ifndef MESSAGES_DEVICE_H
#define MESSAGES_DEVICE_H

#define DEVICE_ADDRESS ((char *) 0x500000000000)
#define DEVICE_BYTES   ((size_t) 1 << 30)
#define DEVICE_ALIAS   ((char *) 0x510000000000)

#endif
