// Small templates, held against what Python's jinja2 makes of them (testdata/expressions.json).
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "text/template/template.h"

namespace strata::jinja {
namespace {

boost::json::value load_goldens() {
  std::ifstream in(STRATA_SOURCE_DIR "/src/text/template/testdata/expressions.json");
  std::stringstream text;
  text << in.rdbuf();
  return boost::json::parse(text.str());
}

Result<std::string> render(std::string_view source, const RenderInputs& inputs) {
  STRATA_ASSIGN(const Template parsed, Template::parse(source));
  STRATA_ASSIGN(const std::vector<RenderedSpan> spans, parsed.render(inputs));
  return join(spans);
}

// Without the place that errors other than the template's own start with.
std::string without_line(const std::string& message) {
  const std::size_t colon = message.find(": ");
  return message.starts_with("chat template, line ") ? message.substr(colon + 2) : message;
}

TEST(Expressions, MeanWhatTheyMeanInPython) {
  const boost::json::value goldens = load_goldens();
  RenderInputs inputs;
  inputs.content = goldens.at("variables").as_object();
  inputs.now = parse_time("2026-03-14T15:09:26");
  int cases = 0;
  for (const auto& entry : goldens.at("cases").as_array()) {
    const boost::json::object& golden = entry.as_object();
    const std::string source(golden.at("source").as_string());
    const auto text = render(source, inputs);
    ++cases;
    if (const auto* expected = golden.if_contains("text"); expected != nullptr) {
      EXPECT_EQ(text.ok() ? *text : text.status().message(), std::string(expected->as_string()))
          << source;
      continue;
    }
    const std::string error(golden.at("error").as_string());
    if (text.ok()) {
      ADD_FAILURE() << source << " gives '" << *text << "', not the error: " << error;
    } else if (golden.at("exact").as_bool()) {
      EXPECT_EQ(without_line(text.status().message()), error) << source;
    }
  }
  EXPECT_GT(cases, 600);
}

}  // namespace
}  // namespace strata::jinja
