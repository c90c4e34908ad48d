#include "models/all.h"

#include <array>

namespace strata {

Result<Graph> build_llama(const ModelManifest& manifest);
Result<Graph> build_qwen2(const ModelManifest& manifest);
Result<Graph> build_qwen3(const ModelManifest& manifest);
Result<Graph> build_qwen3moe(const ModelManifest& manifest);
Result<Graph> build_gemma3(const ModelManifest& manifest);

std::span<const Architecture> architectures() {
  static constexpr std::array kAll = {
      Architecture{"llama", build_llama},   Architecture{"qwen2", build_qwen2},
      Architecture{"qwen3", build_qwen3},   Architecture{"qwen3moe", build_qwen3moe},
      Architecture{"gemma3", build_gemma3},
  };
  return kAll;
}

Result<Graph> build_graph(const ModelManifest& manifest) {
  std::string known;
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == manifest.architecture()) {
      auto graph = architecture.build(manifest);
      if (!graph.ok()) return graph.status().with_context(manifest.file().paths().front());
      return graph;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", architecture.name);
  }
  return unsupported("{}: general.architecture '{}' is not supported; known are: {}",
                     manifest.file().paths().front(), manifest.architecture(), known);
}

}  // namespace strata
