//! Sentences, and what they ask for.

use super::*;

#[track_caller]
fn check(text: &str, expected: &Intent) {
    assert_eq!(&parse(text), expected, "{text}");
}

fn read(path: &str) -> Intent {
    Intent::Read { path: path.into() }
}

fn search(pattern: &str, path: Option<&str>) -> Intent {
    Intent::Search { pattern: pattern.into(), path: path.map(Into::into) }
}

fn list(path: Option<&str>) -> Intent {
    Intent::List { path: path.map(Into::into) }
}

fn run(command: &str) -> Intent {
    Intent::Run { command: command.into() }
}

fn write(path: &str, content: &str) -> Intent {
    Intent::Write { path: path.into(), content: content.into() }
}

fn edit(path: &str, old: &str, new: &str) -> Intent {
    Intent::Edit { path: path.into(), old: old.into(), new: new.into() }
}

#[test]
fn reading() {
    check("read Cargo.toml", &read("Cargo.toml"));
    check("Please read package.json.", &read("package.json"));
    check("read \"my file.txt\" for me", &read("my file.txt"));
    check("read the file src/main.rs, then stop", &read("src/main.rs"));
    check("show file a\\b.txt", &read("a\\b.txt"));
    check("I want you to read ../x.md", &read("../x.md"));
    check("read LICENSE", &read("LICENSE"));
    check("cat .gitignore", &read(".gitignore"));
    check("读 package.json", &read("package.json"));
    check("请读取package.json的内容", &read("package.json"));
    check("打开 src/lib.rs", &read("src/lib.rs"));
    check("打开文件 “说明 一.md”", &read("说明 一.md"));
    check("帮我看看 文档/说明.md", &read("文档/说明.md"));
    check("read it to me please", &Intent::WhichFile);
    check("打开", &Intent::WhichFile);
}

#[test]
fn listing() {
    check("list", &list(None));
    check("list files", &list(None));
    check("ls", &list(None));
    check("list the files in src/", &list(Some("src/")));
    check("list src", &list(Some("src")));
    check("ls .", &list(Some(".")));
    check("列出文件", &list(None));
    check("列出 src/ 目录", &list(Some("src/")));
    check("listen to me", &Intent::Other);
}

#[test]
fn searching() {
    check("grep fn main in src/", &search("fn main", Some("src/")));
    check("search for \"needle in hay\"", &search("needle in hay", None));
    check("search TODO", &search("TODO", None));
    check("find TODO in the src", &search("TODO", Some("src")));
    check("搜索 TODO", &search("TODO", None));
    check("在 src/ 中搜索 TODO", &search("TODO", Some("src/")));
}

#[test]
fn running() {
    check("run cargo test", &run("cargo test"));
    check("run `cat read.txt`", &run("cat read.txt"));
    check("Execute the command \"ls -l\"", &run("ls -l"));
    check("$ echo hi", &run("echo hi"));
    check("执行 echo hi", &run("echo hi"));
    check("运行命令 echo hi", &run("echo hi"));
}

#[test]
fn writing() {
    check("write a.txt: hello: world", &write("a.txt", "hello: world"));
    check("write a.txt:\ntwo\nlines", &write("a.txt", "two\nlines"));
    check("create the file a.txt with content \"x\"", &write("a.txt", "x"));
    check("write to \"a b.txt\": x", &write("a b.txt", "x"));
    check("写 a.txt：你好", &write("a.txt", "你好"));
    check("创建文件 a.txt，内容为 你好", &write("a.txt", "你好"));
    check("write me a poem: short", &Intent::Other);
    check("write something", &Intent::Other);
}

#[test]
fn editing() {
    check("replace foo with bar in a.txt", &edit("a.txt", "foo", "bar"));
    check("replace \"a in b\" with \"c\" in src/x.rs", &edit("src/x.rs", "a in b", "c"));
    check("edit a.txt: replace foo with bar", &edit("a.txt", "foo", "bar"));
    check("in a.txt replace foo with bar", &edit("a.txt", "foo", "bar"));
    check("change 1.0 to 2.0 in Cargo.toml", &edit("Cargo.toml", "1.0", "2.0"));
    check("把 a.txt 中的 foo 替换为 bar", &edit("a.txt", "foo", "bar"));
    check("在 a.txt 中把 foo 改成 bar", &edit("a.txt", "foo", "bar"));
    check("replace it", &Intent::Other);
}

#[test]
fn all_else_is_not_guessed() {
    check("hello", &Intent::Other);
    check("", &Intent::Other);
    check("why is the sky blue?", &Intent::Other);
    check("I already did", &Intent::Other);
}
