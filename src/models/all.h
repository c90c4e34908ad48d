// The architectures Strata knows. Adding one costs its file and its line in all.cc.
#pragma once

#include <span>

#include "gguf/manifest.h"
#include "graph/graph.h"

namespace strata {

struct Architecture {
  std::string_view name;  // general.architecture
  Result<Graph> (*build)(const ModelManifest& manifest);
};

std::span<const Architecture> architectures();

// Builds the manifest's graph; errors name the architecture, the tensor or the key.
Result<Graph> build_graph(const ModelManifest& manifest);

}  // namespace strata
