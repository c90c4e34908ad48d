#include "serve/http/target.h"

#include <gmock/gmock.h>

namespace strata::http {
namespace {

TEST(Target, PathsAndQueriesAreDecoded) {
  const auto target = parse_target("/v1/models/org%2Fa%20b?x=1+2&y=%C3%A9&z&=w");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->path, "/v1/models/org/a b");
  EXPECT_THAT(target->query, testing::ElementsAre(std::pair("x", "1 2"), std::pair("y", "\xC3\xA9"),
                                                  std::pair("z", ""), std::pair("", "w")));
  EXPECT_EQ(target->authority, "");
}

TEST(Target, TheAbsoluteFormNamesItsHost) {
  const auto target = parse_target("HTTP://Example.com:80?q=1");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->path, "/");
  EXPECT_EQ(target->authority, "Example.com:80");
  EXPECT_EQ(parse_target("http://a/b")->path, "/b");
  EXPECT_EQ(parse_target("*")->path, "*");
}

TEST(Target, WhatIsNoAddressIsRefused) {
  for (const char* target : {"", "v1", "localhost:80", "http://", "http:///a", "/%", "/%2", "/%zz",
                             "/a%00b", "/%ff", "/%C3", "/?a=%", "ftp://a/b", "/%2"})
    EXPECT_FALSE(parse_target(target).ok()) << target;
}

TEST(Target, HostsHaveOneForm) {
  EXPECT_EQ(normal_host("LocalHost:8080"), "localhost");
  EXPECT_EQ(normal_host("example.com."), "example.com");
  EXPECT_EQ(normal_host("[0:0::1]:80"), "::1");
  EXPECT_EQ(normal_host("::1"), "::1");
  EXPECT_EQ(normal_host("[::ffff:127.0.0.1]"), "127.0.0.1");
  EXPECT_EQ(normal_host("192.168.1.5:80"), "192.168.1.5");
  for (const char* host : {"", ":80", "[::1", "[::1]x", "[localhost]", "a b", "a:b", "a/b", "a@b"})
    EXPECT_EQ(normal_host(host), std::nullopt) << host;
}

TEST(Target, OnlyNamesOfThisMachineAloneAreLoopback) {
  for (const char* host : {"localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"})
    EXPECT_TRUE(is_loopback_host(host)) << host;
  for (const char* host : {"", "localhost.example.com", "notlocalhost", "127.0.0.1.example.com",
                           "128.0.0.1", "0.0.0.0", "::", "::2", "127.evil.com"})
    EXPECT_FALSE(is_loopback_host(host)) << host;
}

}  // namespace
}  // namespace strata::http
