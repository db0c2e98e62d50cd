/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seen before?  In MPI's order?  Everything that was opened, for a receive or for a probe, has
 * to be accepted here.
 *
 *     serial_take     under the communicator's lock, with the call of the host
 *        |
 *        +-- accept         it was opened, or refused
 *        +-- serial_drop    it was cancelled, lost, plain, or dropped
 *
 * Exactly one of the two gives the serial back; from then on it is 0, which means no serial.
 */
#include "pml_crypt_recv.h"

OPAL_CRYPT_OFTEN
void ompi_pml_crypt_serial_take(ompi_pml_crypt_message_t *m, bool any_tag)
{
    m->any_tag = any_tag;
    m->serial = any_tag ? opal_crypt_serial_take_any(m->c->serials) : opal_crypt_serial_take(m->c->serials);
}

void ompi_pml_crypt_serial_drop(ompi_pml_crypt_message_t *m)
{
    if (0 != m->serial) {
        opal_crypt_serial_drop(m->c->serials, m->serial);
        m->serial = 0;
    }
}

OPAL_CRYPT_OFTEN
int ompi_pml_crypt_accept(ompi_pml_crypt_message_t *m, const opal_crypt_envelope_t *envelope, int rc, uint64_t counter)
{
    const int flags = m->any_tag ? OPAL_CRYPT_ANY_TAG : 0;
    const uint64_t serial = m->serial;

    if (OPAL_CRYPT_OK != rc) {
        ompi_pml_crypt_serial_drop(m);
        return rc;
    }
    m->serial = 0;
    return opal_crypt_accept(m->peer->session, m->c->serials, serial, envelope, counter, flags);
}
