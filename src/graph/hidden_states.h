// A model without its output head.
#pragma once

#include "graph/graph.h"

namespace strata {

// The graph whose output is what the head reads: the hidden states behind the final norm. The head
// and its weights go, unless they are the embedding too; a graph without a head stays as it is.
Result<Graph> without_output_head(Graph graph);

}  // namespace strata
