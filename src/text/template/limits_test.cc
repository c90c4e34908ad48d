// Hostile templates end in errors, soon and without much memory.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <string>
#include <vector>

#include "text/template/template.h"

namespace strata::jinja {
namespace {

Status outcome(std::string_view source, const RenderLimits& limits = {},
               const RenderInputs& inputs = {}) {
  const auto parsed = Template::parse(source, limits);
  return parsed.ok() ? parsed->render(inputs, limits).status() : parsed.status();
}

std::string repeat(std::string_view piece, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

// Under the default limits, but for the steps, which are only there to be run through.
void expect_exhausted(std::string_view source) {
  RenderLimits limits;
  limits.steps = 2'000'000;
  const Status status = outcome(source, limits);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted)
      << source.substr(0, 100) << ": " << status.message();
}

TEST(Limits, EndlessLoopsRunOutOfSteps) {
  expect_exhausted(
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  expect_exhausted(
      "{% macro m(x) %}{{ m(x) if x > 0 }}{{ m(x - 1) if x > 0 }}{% endmacro %}{{ m(500) }}");
}

TEST(Limits, TextThatMultipliesIsStopped) {
  expect_exhausted("{{ 'a' * 10 ** 9 }}");
  expect_exhausted("{{ 'abc' * 9000000000000000000 }}");
  expect_exhausted("{{ ('a' * 1000000) | replace('', 'b' * 1000000) }}");
  expect_exhausted("{{ (['a' * 100000] * 100000) | join('b' * 100000) }}");
  expect_exhausted("{{ ('x' * 1000000) | join('y' * 1000000) }}");
  expect_exhausted("{{ 'x' | center(10 ** 12) }}");
  expect_exhausted("{{ 'x'.ljust(10 ** 12) }}");
  expect_exhausted("{{ ('a\n' * 100000) | indent(100000) }}");
  expect_exhausted("{{ '%999999999d' % 1 }}");
  expect_exhausted("{{ '{:999999999}'.format(1) }}");
  expect_exhausted("{{ '%.999999999f' % 1.5 }}");
  expect_exhausted("{{ {'a': [[1]]} | tojson(indent=10 ** 9) }}");
  expect_exhausted("{% for i in range(99999) %}{{ 'a' * 100000 }}{% endfor %}");
}

// Each change between the template's bytes and those of an input takes memory of its own.
TEST(Limits, TextOfManySpansIsStopped) {
  RenderInputs inputs;
  inputs.content["c"] = "c";
  const std::string_view source = "{% for i in range(99999) %}{{ c }}x{% endfor %}";
  EXPECT_EQ(outcome(source, {}, inputs).code(), StatusCode::kResourceExhausted);
}

TEST(Limits, ListsThatMultiplyAreStopped) {
  expect_exhausted("{{ range(10 ** 9) }}");
  expect_exhausted("{{ [1] * 10 ** 9 }}");
  expect_exhausted("{{ ([1] * 100000) * 100000 }}");
  expect_exhausted("{{ [1] | batch(10 ** 9, 0) | list }}");
  expect_exhausted(
      "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}"
      "{% endfor %}");
}

// A value can share its parts, so that a small one has a huge text.
TEST(Limits, SharedValuesDoNotExplodeWhenWalked) {
  const std::string doubled =
      "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor "
      "%}";
  for (const std::string_view use : {"{{ n.x }}", "{{ n.x | tojson }}", "{{ n.x == n.x * 1 }}",
                                     "{{ [n.x] | sort }}{{ n.x | string | length }}",
                                     "{{ n.x < n.x }}", "{{ {(1, 2): 3}[n.x] }}{{ n.x ~ '' }}"})
    expect_exhausted(doubled + std::string(use));
}

TEST(Limits, DeepValuesAreRefusedBeforeTheyAreBuilt) {
  expect_exhausted(
      "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}");
  expect_exhausted(
      "{% set n = namespace(x={}) %}{% for i in range(9999) %}{% set n.x = {1: n.x} %}{% endfor "
      "%}");
}

TEST(Limits, RecursionIsCounted) {
  expect_exhausted("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
  expect_exhausted(
      "{% macro m() %}{% call m() %}{% endcall %}{{ caller() }}{% endmacro %}{{ m() }}");
  expect_exhausted("{% for x in ['a'] recursive %}{{ loop(['a']) }}{% endfor %}");
  expect_exhausted("{{ 'a' | map(" + repeat("'map', ", 20000) + "'upper') | list }}");
}

TEST(Limits, DeepSourceIsRefused) {
  for (const std::string& source :
       {"{{ " + repeat("(", 100000) + "1" + repeat(")", 100000) + " }}",
        "{{ " + repeat("[", 100000) + repeat("]", 100000) + " }}",
        "{{ " + repeat("{1:", 100000) + "1" + repeat("}", 100000) + " }}",
        "{{ " + repeat("not ", 100000) + "1 }}", "{{ " + repeat("-", 100000) + "1 }}",
        "{{ 1" + repeat(" + 1", 100000) + " }}", "{{ a" + repeat(".b", 100000) + " }}",
        "{{ a" + repeat("|e", 100000) + " }}", "{{ a" + repeat("[0]", 100000) + " }}",
        "{{ 1" + repeat(" if 1 else 1", 50000) + " }}", "{{ f" + repeat("()", 100000) + " }}",
        "{{ 1" + repeat(" is odd", 1) + repeat(" and 1", 100000) + " }}",
        repeat("{% if 1 %}", 40000) + repeat("{% endif %}", 40000),
        "{% set " + repeat("(", 100000) + "a" + repeat(")", 100000) + " = 1 %}"}) {
    const Status status = outcome(source);
    EXPECT_FALSE(status.ok()) << source.substr(0, 40);
    EXPECT_NE(status.message().find("too deep"), std::string::npos) << status.message();
  }
}

// Runs `work` on a thread with a stack of that size.
void on_stack(std::size_t bytes, std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  const auto call = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Limits, SmallStacksAreNotOverrun) {
  const std::string deep_list = "{{ " + repeat("[", 120) + repeat("]", 120) + " }}";
  const std::string deep_value =
      "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(120) %}{% set n.x = [n.x] %}"
      "{% set n.y = [n.y] %}{% endfor %}{{ n.x | tojson }}{{ n.x }}{{ n.x == n.y }}{{ n.x < n.y }}";
  const std::string deep_filter =
      "{% macro m() %}{% filter upper %}{% set z %}{{ [[m() | map('upper') | list]] }}{% endset %}"
      "{{ z }}{% endfilter %}{% endmacro %}{{ m() }}";
  const std::string deep_call =
      "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}"
      "{{ m() }}";
  const std::vector<std::string> sources = {
      deep_list,
      deep_value,
      "{{ " + repeat("(", 190) + "1" + repeat(")", 190) + " }}",
      "{{ " + repeat("{1: 1}[", 190) + "1" + repeat("]", 190) + " }}",
      "{{ 1" + repeat(" + 1", 190) + " }}",
      repeat("{% if 1 %}", 190) + repeat("{% endif %}", 190),
      repeat("{% for i in [1] %}", 90) + deep_list + repeat("{% endfor %}", 90),
      "{% macro m(x) %}{{ m(x + 1) }}{% endmacro %}{{ m(1) }}",
      "{% macro m(x) %}" + deep_value + "{{ m(x + 1) }}{% endmacro %}{{ m(1) }}",
      deep_filter,
      deep_call,
      "{% for x in ['a'] recursive %}{{ loop(['a']) }}{% endfor %}"};
  for (const std::size_t kib : {256, 320, 384, 512, 1024})
    on_stack(kib << 10, [&] {
      for (const std::string& source : sources) {
        const Status status = outcome(source);
        if (status.ok()) continue;
        EXPECT_TRUE(status.message().find("too deep") != std::string::npos ||
                    status.message().find("nests more") != std::string::npos)
            << source.substr(0, 60) << ": " << status.message();
      }
      EXPECT_TRUE(outcome("{% for m in [1, 2] %}{{ [m, [m]] | tojson }}{% endfor %}").ok());
    });
}

TEST(Limits, LongSourcesInputsAndNumbersAreRefusedWithAReason) {
  EXPECT_NE(outcome(std::string((1 << 20) + 1, 'a')).message().find("1048577 bytes"),
            std::string::npos);
  EXPECT_NE(outcome("{{ 99999999999999999999 }}").message().find("too large"), std::string::npos);
  EXPECT_NE(outcome("{{ 2 ** 64 }}").message().find("64 bits"), std::string::npos);
  EXPECT_NE(outcome("{{ -9223372036854775807 - 2 }}").message().find("64 bits"), std::string::npos);
  EXPECT_FALSE(outcome("{{ (-9223372036854775807 - 1) // -1 }}").ok());
  EXPECT_TRUE(outcome("{{ (-9223372036854775807 - 1) % -1 }}").ok());
  boost::json::value deep = 1;
  for (int i = 0; i < 500; ++i) deep = boost::json::array{deep};
  RenderInputs inputs;
  inputs.content["messages"] = deep;
  EXPECT_EQ(outcome("", {}, inputs).code(), StatusCode::kResourceExhausted);
}

TEST(Limits, InputsThatAreTooLargeAreNamed) {
  RenderLimits limits;
  limits.memory_bytes = 10'000;
  RenderInputs inputs;
  const auto refused_of = [&](std::string_view source) {
    std::string refused = "?";
    const auto parsed = Template::parse(source);
    EXPECT_FALSE(parsed->render(inputs, limits, &refused).ok());
    return refused;
  };
  inputs.content = {{"messages", "x"}, {"tools", boost::json::array(500, "x")}, {"more", "x"}};
  EXPECT_EQ(refused_of("{{ messages }}"), "tools");
  inputs.content.erase("tools");
  EXPECT_EQ(refused_of("{{ messages + 1 }}"), "");
}

TEST(Limits, WorkOnLongTextIsPaidFor) {
  RenderLimits limits;
  limits.steps = 100'000;
  for (const std::string_view use :
       {"t | upper", "t.find('zz')", "'zz' in t", "t | length", "t == t ~ 'a'", "t[::-1] == ''",
        "t[99999]", "t.split('b')", "t.strip('ab')", "t.rfind('zz')", "t.count('zz')",
        "t | wordcount", "t.isalpha()", "t | urlencode", "t | e"}) {
    const std::string source = fmt::format(
        "{{% set t = 'a' * 1000000 %}}{{% for i in range(90000) %}}{{% set x = {} %}}{{% endfor "
        "%}}",
        use);
    const Status status = outcome(source, limits);
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << use << status.message();
  }
}

TEST(Limits, ObjectsThatReferToThemselvesAreFreed) {
  EXPECT_TRUE(
      outcome("{% set n = namespace() %}{% set n.me = n %}{% set n.l = [n] %}{{ n.me.me.l }}"
              "{% macro m() %}{{ m is defined }}{% endmacro %}{% set n.m = m %}{{ n.m() }}"
              "{% for i in [1] %}{% set n.loop = loop %}{% endfor %}{{ n.loop.index }}{{ "
              "n.loop.previtem }}")
          .ok());
}

}  // namespace
}  // namespace strata::jinja
