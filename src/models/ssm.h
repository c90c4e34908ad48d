// What architectures with state space layers share.
#pragma once

#include <functional>

#include "models/blocks.h"

namespace strata {

// Hyper-parameters under GGUF's ssm keys.
struct SsmParams {
  std::int32_t kernel = 0;  // taps of the convolution
  std::int32_t inner = 0;   // channels
  std::int32_t state = 0;   // elements of a channel's state
  std::int32_t rank = 0;    // of the time step; the number of heads from Mamba 2 on
  std::int32_t groups = 1;  // of heads that share their inputs and outputs to the state
};
Result<SsmParams> read_ssm_params(const ModelManifest& manifest);

// As read_ssm_params, for layers whose heads divide the channels and whose groups divide the heads.
Result<SsmParams> read_mamba2_params(const ModelManifest& manifest);

// The taps "<name>.weight" with "<name>.bias", where the file has one, over `in`.
ValueId short_conv_block(ModelBuilder& model, const std::string& name, std::int32_t kernel,
                         ValueId in);

// A Mamba 2 layer on its normed input, output projection included.
ValueId mamba2_block(ModelBuilder& model, const TransformerParams& params, const SsmParams& ssm,
                     std::int32_t layer, ValueId normed);

// A layer on its normed input.
using Block = std::function<ValueId(ModelBuilder& model, std::int32_t layer, ValueId normed)>;
// Layers of one norm and one block each, between embedding and output head.
Result<Graph> build_single_blocks(const ModelManifest& manifest, const TransformerParams& params,
                                  const Block& block);

}  // namespace strata
