/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What accelerator.c takes for the memory of an accelerator.
 */
#ifndef MESSAGES_DEVICE_H
#define MESSAGES_DEVICE_H

#define DEVICE_ADDRESS ((char *) 0x500000000000)
#define DEVICE_BYTES   ((size_t) 1 << 30)

#endif
