// Thousands of damaged templates. What counts is that all return; sanitizers watch.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

#include "tests/shared_data.h"
#include "text/template/test_support.h"

namespace strata::jinja {
namespace {

using testing::read_file;

// The sources of the expression goldens, and the templates of models where they are there.
std::vector<std::string> seeds() {
  std::vector<std::string> out;
  const boost::json::value goldens = boost::json::parse(
      read_file(STRATA_SOURCE_DIR "/src/text/template/testdata/expressions.json"));
  for (const auto& entry : goldens.at("cases").as_array())
    out.emplace_back(entry.at("source").as_string());
  const auto folder = testing::shared_data_root() / "templates";
  if (!std::filesystem::exists(folder)) return out;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".jinja") out.push_back(read_file(file.path()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

class Mutator {
 public:
  explicit Mutator(std::uint32_t seed) : random_(seed) {}
  std::size_t below(std::size_t limit) { return random_() % limit; }

  // Cuts, doubles, swaps and overwrites pieces; puts in what the grammar is made of.
  void mutate(std::string& text, const std::string& other) {
    constexpr std::string_view kPieces[] = {"{{",
                                            "}}",
                                            "{%",
                                            "%}",
                                            "{#",
                                            "#}",
                                            "-%}",
                                            "(",
                                            ")",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            "|",
                                            ".",
                                            ",",
                                            ":",
                                            "~",
                                            " if ",
                                            " else ",
                                            " is ",
                                            " not ",
                                            " in ",
                                            "loop",
                                            "None",
                                            "'",
                                            "\\",
                                            "{% endif %}",
                                            "{% endfor %}",
                                            "{% else %}",
                                            "|list",
                                            "|tojson",
                                            "|map(",
                                            "*args",
                                            "**d",
                                            "9223372036854775807",
                                            "-1",
                                            "1e308",
                                            "\xff",
                                            "é",
                                            "\n",
                                            "[::-1]"};
    for (std::size_t change = below(4) + 1; change > 0; --change) {
      const std::size_t at = below(text.size() + 1);
      const std::size_t length = std::min(below(40), text.size() - at);
      switch (below(5)) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, kPieces[below(std::size(kPieces))]); break;
        case 2: text.insert(below(text.size() + 1), text.substr(at, length)); break;
        case 3: text.replace(at, length, kPieces[below(std::size(kPieces))]); break;
        default: {
          const std::size_t from = below(other.size() + 1);
          text.insert(at, other.substr(from, below(60)));
        }
      }
    }
  }

 private:
  std::mt19937 random_;
};

TEST(Mutation, FourThousandDamagedTemplatesReturn) {
  const std::vector<std::string> sources = seeds();
  const RenderInputs inputs = testing::sample_inputs();
  Mutator mutator(20260314);
  int rendered = 0;
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string source = sources[mutator.below(sources.size())];
    mutator.mutate(source, sources[mutator.below(sources.size())]);
    (testing::try_render(source, inputs) ? rendered : refused) += 1;
  }
  // Both ways are taken, so the damage reaches the parser and the evaluator.
  EXPECT_GT(rendered, 400);
  EXPECT_GT(refused, 400);
}

}  // namespace
}  // namespace strata::jinja
