//! Examples of every command, a file for each family of commands.
//!
//! A section begins with the words that select the command, in brackets. Its lines are what an example
//! does, after `# `, and command lines; a backslash at the end continues one on the next line. They end
//! the help of the command, and are the section EXAMPLES of its manual page.

mod table;

pub use table::examples;
