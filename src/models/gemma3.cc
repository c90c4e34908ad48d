// gemma3: Gemma 3 text models. Norms before and after each block, norms on query and key heads,
// five windowed layers to each global one, two rope bases, tied and scaled embedding.
#include <cmath>

#include "models/blocks.h"

namespace strata {
namespace {

// The family's 27B model scales queries by the embedding's share of a head, the others by head
// size.
constexpr std::int32_t kLayersOf27B = 62;

struct Windows {
  std::int32_t size = 0;
  std::int64_t pattern = 6;  // every pattern-th layer is global
};

Result<Windows> read_windows(const ModelManifest& manifest) {
  STRATA_ASSIGN(const auto size, manifest.integer("attention.sliding_window", 1, 1 << 30));
  STRATA_ASSIGN(const auto pattern,
                manifest.integer_or("attention.sliding_window_pattern", 6, 1, 4096));
  return Windows{static_cast<std::int32_t>(size), pattern};
}

}  // namespace

Result<Graph> build_gemma3(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(const Windows windows, read_windows(manifest));
  STRATA_ASSIGN(const double local_base, manifest.real_or("rope.freq_base_swa", 10000.0));
  STRATA_ASSIGN(const double softcap, manifest.real_or("final_logit_softcapping", 0));
  if (local_base <= 0)
    return corrupt("{} must be positive", manifest.full_key("rope.freq_base_swa"));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto local = graph.rope_table({ValueId{}, p.rope_dimensions, local_base, 1.0, {}});
  const auto global =
      graph.rope_table({ValueId{}, p.rope_dimensions, p.rope_base, p.rope_scale, {}});
  const auto query_size = p.layers == kLayersOf27B
                              ? static_cast<double>(p.embedding) / double(p.heads.front())
                              : static_cast<double>(p.key_size);
  AttentionBlock attention;
  attention.head_norms = true;
  attention.scale = static_cast<float>(1.0 / std::sqrt(query_size));

  const auto norm = [&](ValueId in, std::int32_t layer, std::string_view name) {
    return graph.norm(in, model.vector(layer_tensor(layer, name), p.embedding), p.epsilon);
  };
  const auto x = graph.embed(embedding, std::sqrt(static_cast<float>(p.embedding)));
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const bool is_global = (layer + 1) % windows.pattern == 0;
    attention.rope_table = is_global ? global : local;
    attention.window = is_global ? 0 : windows.size;
    const auto attended =
        attention_block(model, p, layer, norm(x, layer, "attn_norm.weight"), attention);
    graph.add_to(x, norm(attended, layer, "post_attention_norm.weight"));
    const auto fed = gated_feed_forward(model, p, layer, norm(x, layer, "ffn_norm.weight"),
                                        GateFunction::kGeluTanh);
    graph.add_to(x, norm(fed, layer, "post_ffw_norm.weight"));
  }
  const auto logits = output_head(model, p, embedding, x);
  if (softcap > 0) graph.softcap(logits, static_cast<float>(softcap));
  return model.finish(logits);
}

}  // namespace strata
