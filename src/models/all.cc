#include "models/all.h"

#include <array>

namespace strata {

Result<Graph> build_llama(const ModelManifest& manifest);
Result<Graph> build_qwen2(const ModelManifest& manifest);
Result<Graph> build_qwen2moe(const ModelManifest& manifest);
Result<Graph> build_qwen3(const ModelManifest& manifest);
Result<Graph> build_qwen3moe(const ModelManifest& manifest);
Result<Graph> build_gemma2(const ModelManifest& manifest);
Result<Graph> build_gemma3(const ModelManifest& manifest);
Result<Graph> build_phi3(const ModelManifest& manifest);
Result<Graph> build_gpt_oss(const ModelManifest& manifest);
Result<Graph> build_smollm3(const ModelManifest& manifest);
Result<Graph> build_granite(const ModelManifest& manifest);
Result<Graph> build_olmo2(const ModelManifest& manifest);
Result<Graph> build_glm4moe(const ModelManifest& manifest);
Result<Graph> build_deepseek2(const ModelManifest& manifest);
Result<Graph> build_mamba(const ModelManifest& manifest);
Result<Graph> build_mamba2(const ModelManifest& manifest);
Result<Graph> build_lfm2(const ModelManifest& manifest);
Result<Graph> build_nemotron_h(const ModelManifest& manifest);
Result<Graph> build_granitehybrid(const ModelManifest& manifest);
Result<Graph> build_qwen3next(const ModelManifest& manifest);
Result<Graph> build_rwkv7(const ModelManifest& manifest);
Result<Graph> build_bert(const ModelManifest& manifest);
Result<Graph> build_nomic_bert(const ModelManifest& manifest);

std::span<const Architecture> architectures() {
  static constexpr std::array kAll = {
      Architecture{"llama", build_llama},
      Architecture{"qwen2", build_qwen2},
      Architecture{"qwen2moe", build_qwen2moe},
      Architecture{"qwen3", build_qwen3},
      Architecture{"qwen3moe", build_qwen3moe},
      Architecture{"gemma2", build_gemma2},
      Architecture{"gemma3", build_gemma3},
      Architecture{"phi3", build_phi3},
      Architecture{"gpt-oss", build_gpt_oss},
      Architecture{"smollm3", build_smollm3},
      Architecture{"granite", build_granite},
      Architecture{"granitemoe", build_granite},
      Architecture{"olmo2", build_olmo2},
      Architecture{"glm4moe", build_glm4moe},
      Architecture{"deepseek2", build_deepseek2},
      Architecture{"mamba", build_mamba},
      Architecture{"mamba2", build_mamba2},
      Architecture{"lfm2", build_lfm2},
      Architecture{"nemotron_h", build_nemotron_h},
      Architecture{"granitehybrid", build_granitehybrid},
      Architecture{"qwen3next", build_qwen3next},
      Architecture{"rwkv7", build_rwkv7},
      Architecture{"bert", build_bert},
      Architecture{"nomic-bert", build_nomic_bert},
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
