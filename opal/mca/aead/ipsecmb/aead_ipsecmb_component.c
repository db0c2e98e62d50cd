/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the component loader looks up in mca_aead_ipsecmb.so.
 */
#include "opal/mca/aead/base/aead_base_component.h"

OPAL_AEAD_COMPONENT(ipsecmb);
