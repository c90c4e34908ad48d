// The layer structure that Granite's dense and hybrid models share.
#pragma once

#include "models/blocks.h"

namespace strata {

// The llama shape with multipliers on embedding, residual, scores and logits; with experts, perhaps
// beside a shared one. Where layers are mixed, those without attention are Mamba 2 layers, and
// positions count through them alone unless the file asks for rope.
Result<Graph> build_granite_layers(const ModelManifest& manifest, LayerMix mix);

}  // namespace strata
