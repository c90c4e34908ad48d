#include "grammar/other_text.h"

#include <algorithm>
#include <utility>

namespace strata {

// Follows the tree of the excluded texts; a character that is not in it leads to any rest.
GrammarBuilder::Id add_other_text(
    GrammarBuilder& builder, std::vector<std::u32string> excluded,
    const std::function<GrammarBuilder::Id(const CharClass&)>& spelled, GrammarBuilder::Id rest,
    GrammarBuilder::Id end) {
  struct Node {
    bool ends = false;
    std::vector<std::pair<char32_t, std::size_t>> children;
  };
  std::ranges::sort(excluded);
  std::vector<Node> nodes(1);
  for (const std::u32string& text : excluded) {
    std::size_t at = 0;
    for (const char32_t c : text) {
      // Every node becomes a rule, of which a builder takes no more.
      if (nodes.size() > GrammarLimits::kRules) break;
      if (nodes[at].children.empty() || nodes[at].children.back().first != c) {
        nodes[at].children.emplace_back(c, nodes.size());
        nodes.emplace_back();
      }
      at = nodes[at].children.back().second;
    }
    nodes[at].ends = true;
  }
  // Rules, as a text may be longer than expressions may nest. Children stand behind parents.
  std::vector<GrammarBuilder::Id> behind(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0 && builder.status().ok();) {
    std::vector<GrammarBuilder::Id> ways;
    std::vector<CharRange> known;
    if (!nodes[i].ends) ways.push_back(end);
    for (const auto& [c, child] : nodes[i].children) {
      known.push_back({c, c});
      ways.push_back(builder.sequence({spelled(CharClass({{c, c}})), behind[child]}));
    }
    ways.push_back(builder.sequence({spelled(CharClass(std::move(known)).negated()), rest}));
    const auto rule = builder.add_rule("another text");
    builder.define(rule, builder.choice(std::move(ways)));
    behind[i] = builder.rule(rule);
  }
  return behind[0];
}

}  // namespace strata
