#!/usr/bin/env python3
"""The runner of .case files must fail where a case does not hold: each rule once, both ways."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run_case


class Matching(unittest.TestCase):
    def check(self, expected, lines, answer):
        self.assertEqual(run_case.output_matches(expected, lines), answer, (expected, lines))

    def test_plain_lines(self):
        self.check(["a", "b"], ["a", "b"], True)
        self.check(["a", "b"], ["a"], False)
        self.check(["a"], ["a", "b"], False)
        self.check([], [], True)
        self.check([], ["a"], False)

    def test_dots_in_a_line(self):
        self.check(["step ... ms"], ["step 1.5 ms"], True)
        self.check(["step ... ms"], ["step 1.5 us"], False)
        self.check(["a.c"], ["abc"], False)  # a full stop is a full stop

    def test_dots_as_a_line(self):
        self.check(["a", "...", "d"], ["a", "b", "c", "d"], True)
        self.check(["a", "...", "d"], ["a", "d"], True)
        self.check(["...", "d"], ["a", "d", "e"], False)
        # The first "b" must not be taken greedily.
        self.check(["...", "b", "c"], ["b", "x", "b", "c"], True)

    def test_escapes(self):
        self.check(["\\# title"], ["# title"], True)
        self.check(["\\$ money"], ["$ money"], True)


class Files(unittest.TestCase):
    def run_text(self, text, have=frozenset()):
        with tempfile.TemporaryDirectory() as folder:
            case = os.path.join(folder, "x.case")
            with open(case, "w", encoding="utf-8") as file:
                file.write(text)
            sys.stdout.flush()
            saved, sys.stdout = sys.stdout, open(os.devnull, "w", encoding="utf-8")
            try:
                return run_case.run_case(case, "/bin/true", folder, set(have))
            finally:
                sys.stdout.close()
                sys.stdout = saved

    def test_output_and_exit(self):
        self.assertEqual(self.run_text("# story\n$ echo hello\nhello\n\n$ exit 3\n# exit 3\n"), 0)
        self.assertEqual(self.run_text("$ echo hello\ngoodbye\n"), 1)
        self.assertEqual(self.run_text("$ exit 3\n"), 1)
        self.assertEqual(self.run_text("$ true\n# exit 3\n"), 1)

    def test_errors_stand_last(self):
        self.assertEqual(self.run_text("$ echo e >&2; echo o\no\ne\n"), 0)

    def test_continued_command(self):
        self.assertEqual(self.run_text("$ cat > f <<END\n> 7\n> END\n$ cat f\n7\n"), 0)

    def test_needs(self):
        self.assertEqual(self.run_text("# needs mpi\n$ false\n"), run_case.SKIPPED)
        self.assertEqual(self.run_text("# needs mpi\n$ true\n", {"mpi"}), 0)

    def test_nothing_to_run(self):
        with self.assertRaises(ValueError):
            self.run_text("# only a comment\n")
        with self.assertRaises(ValueError):
            self.run_text("output\n$ true\n")


if __name__ == "__main__":
    unittest.main()
