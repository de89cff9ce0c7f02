"""Tests of scripts/check-access-widths.py: each rule on a device function that breaks it, and on one that has the reason
for which it allows narrow accesses."""

import importlib.util
import pathlib
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check-access-widths.py"
spec = importlib.util.spec_from_file_location("check_access_widths", SCRIPT)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

HEAD = """
.visible .entry f(
	.param .u64 .ptr .align 64 f_param_0,
	.param .u64 .ptr .align 64 f_param_1
)
.reqntid 64
.minnctapersm 1
{
	.reg .b64 	%rd<9>;
	ld.param.b64 	%rd1, [f_param_0];
	cvta.to.global.u64 	%rd1, %rd1;
	ld.param.b64 	%rd2, [f_param_1];
	cvta.to.global.u64 	%rd2, %rd2;
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	shl.b32 	%r3, %r2, 6;
	or.b32 	%r4, %r3, %r1;
"""


def at(register, base, expression):
    """Sets `register` to the address of `base` plus the value that `expression`, an instruction, sets %rd8 to."""
    return f"\t{expression};\n\tadd.s64 \t{register}, {base}, %rd8;\n"


def each(bytes_per_thread):
    return f"mul.wide.u32 \t%rd8, %r4, {bytes_per_thread}"


def copy(width, load, store):
    """A copy of `width` bytes per thread."""
    return at("%rd3", "%rd1", each(width)) + at("%rd4", "%rd2", each(width)) + load + store


class CheckAccessWidths(unittest.TestCase):
    def errors(self, body, blocks=4):
        kernels = [{"name": "f", "grid": {"blocks": [blocks], "threads": [64]}}, {"name": "gather_rows"}]
        functions, errors = module.check("// PTX\n" + HEAD + body + "\tret;\n\n}\n// ptxas\n", kernels)
        self.assertEqual(functions, 1)
        return errors

    def refused(self, rule, body, count=1, **keywords):
        errors = self.errors(body, **keywords)
        self.assertEqual(len(errors), count, errors)
        for error in errors:
            self.assertTrue(error.startswith(f"f: {rule}: the "), error)
        return errors

    def test_wide_accesses(self):
        self.assertEqual(self.errors(copy(16, "\tld.global.v4.b32 \t{%r5, %r6, %r7, %r8}, [%rd3];\n",
                                          "\tst.global.v4.b32 \t[%rd4], {%r5, %r6, %r7, %r8};\n")), [])

    def test_scalar_copy(self):
        error, = self.refused("vector", copy(4, "\tld.global.b32 \t%r5, [%rd3];\n", "\tst.global.b32 \t[%rd4], %r5;\n"))
        self.assertIn("load of argument 0 moves 4 bytes per thread", error)
        error, = self.refused("vector", copy(8, "\tld.global.v2.b32 \t{%r5, %r6}, [%rd3];\n",
                                             "\tst.global.v2.b32 \t[%rd4], {%r5, %r6};\n"))
        self.assertIn("load of argument 0 moves 8 bytes per thread", error)

    def test_split(self):
        loads = "".join(f"\tld.global.b32 \t%r{5 + i}, [%rd3+{4 * i}];\n" for i in range(4))
        error, = self.refused("split", copy(16, loads, "\tst.global.v4.b32 \t[%rd4], {%r5, %r6, %r7, %r8};\n"))
        self.assertIn("load of argument 0 moves 16 bytes in accesses of 4, and every place of it is a multiple of 16", error)
        stores = "\tst.global.v2.b32 \t[%rd4+8], {%r7, %r8};\n\tst.global.v2.b32 \t[%rd4], {%r5, %r6};\n"
        error, = self.refused("split", copy(16, "\tld.global.v4.b32 \t{%r5, %r6, %r7, %r8}, [%rd3];\n", stores))
        self.assertIn("store to argument 1 moves 16 bytes in accesses of 8", error)

    def test_split_of_rows_that_begin_anywhere(self):
        loads = "".join(f"\tld.global.b32 \t%r{5 + i}, [%rd3+{4 * i}];\n" for i in range(4))
        self.assertEqual(self.errors(at("%rd3", "%rd1", each(20)) + loads), [])

    def test_broadcast(self):
        loads = "\tld.global.b32 \t%r5, [%rd1];\n\tld.global.b32 \t%r6, [%rd1+4];\n"
        self.assertEqual(self.errors(loads), [])
        # It is no reason for the others.
        self.refused("vector", loads + at("%rd4", "%rd2", each(4)) + "\tst.global.b32 \t[%rd4], %r5;\n")

    def test_strided(self):
        self.assertEqual(self.errors(at("%rd3", "%rd1", each(400)) + "\tld.global.b32 \t%r5, [%rd3];\n" +
                                     at("%rd4", "%rd2", each(4)) + "\tst.global.b32 \t[%rd4], %r5;\n"), [])

    def test_extent(self):
        body = copy(4, "\tld.global.b32 \t%r5, [%rd3];\n", "\tst.global.b32 \t[%rd4], %r5;\n")
        # The last of 201 threads has no partner. It is in no block of those that are tried first.
        for last, count in ((200, 0), (201, 1), (200 + 64 * 1000, 0), (201 + 64 * 1000, 1)):
            with self.subTest(last=last):
                guard = f"\tsetp.gt.u32 \t%p1, %r4, {last};\n\t@%p1 bra \t$L__BB0_2;\n"
                self.refused("vector", guard + body + "$L__BB0_2:\n", count=count, blocks=last // 64 + 3)

    def test_extent_of_what_is_padded(self):
        for last, count in ((100, 0), (101, 2)):
            with self.subTest(last=last):
                self.refused("vector", at("%rd3", "%rd1", each(4)) + at("%rd4", "%rd2", each(4)) + f"""
	setp.gt.u32 	%p1, %r4, {last};
	mov.b32 	%r5, 0;
	@%p1 bra 	$L__BB0_2;
	ld.global.b32 	%r5, [%rd3];
$L__BB0_2:
	st.global.b32 	[%rd4], %r5;
""", count=count)

    def test_rows_in_turn(self):
        """A row of 64 * 3 elements: each thread has three of them, in a loop."""
        self.refused("vector", """
	mov.b32 	%r5, %r1;
$L__BB0_1:
	mad.lo.s32 	%r6, %r2, 192, %r5;
	mul.wide.u32 	%rd8, %r6, 4;
	add.s64 	%rd3, %rd1, %rd8;
	ld.global.b32 	%r7, [%rd3];
	add.s32 	%r5, %r5, 64;
	setp.lt.u32 	%p1, %r5, 192;
	@%p1 bra 	$L__BB0_1;
""")

    def test_unaligned(self):
        self.assertEqual(self.errors(at("%rd3", "%rd1", each(4)) + "\tld.global.b32 \t%r5, [%rd3+4];\n"), [])

    def test_type(self):
        """Two bytes and four: vectors of eight, of which the wider type takes two accesses. No more fit."""
        body = at("%rd3", "%rd1", each(32)) + at("%rd4", "%rd2", each(8)) + """
	ld.global.v4.b32 	{%r5, %r6, %r7, %r8}, [%rd3];
	ld.global.v4.b32 	{%r9, %r10, %r11, %r12}, [%rd3+16];
	st.global.v2.b32 	[%rd4], {%r5, %r6};
"""
        self.assertEqual(self.errors(body), [])

    def test_tail(self):
        for elements, count in ((6, 0), (10, 1)):
            with self.subTest(elements=elements):
                guard = f"\tand.b32 \t%r9, %r1, 31;\n\tsetp.ge.u32 \t%p1, %r9, {elements};\n\t@%p1 bra \t$L__BB0_2;\n"
                self.refused("vector", guard + at("%rd3", "%rd1", each(4)) + "\tld.global.b32 \t%r5, [%rd3];\n$L__BB0_2:\n",
                             count=count)

    def test_arithmetic(self):
        """Divisions by constants, compiled with signs and 16 bits: element i of rows of 3 that lie 5 apart."""
        self.assertEqual(self.errors("""
	cvt.u16.u32 	%rs1, %r4;
	mul.hi.u16 	%rs2, %rs1, -21845;
	shr.u16 	%rs3, %rs2, 1;
	mul.lo.s16 	%rs4, %rs3, 3;
	sub.s16 	%rs5, %rs1, %rs4;
	mad.lo.s16 	%rs6, %rs3, 5, %rs5;
	cvt.u64.u16 	%rd5, %rs6;
	shl.b64 	%rd8, %rd5, 2;
	add.s64 	%rd3, %rd1, %rd8;
	ld.global.b32 	%r5, [%rd3];
"""), [])
        function = module.Function("f", "\tcvt.s64.s32 \t%rd1, %r1;\n\tld.global.b32 \t%r5, [%rd1+-4];\n\tret;\n")
        self.assertEqual(function.accesses, [(0, False, 4)])

    def test_what_is_not_known_is_said(self):
        error, = self.errors("\tfrob.b64 \t%rd8, %rd1;\n\tld.global.b32 \t%r5, [%rd8];\n")
        self.assertIn("does not know 'frob.b64 %rd8, %rd1'", error)
        error, = self.errors("\tsetp.gt.u32 \t%p1, %r4, 0;\n\tsetp.lt.u32 \t%p2, %r4, 1;\n\tand.pred \t%p1, %p1, %p2;\n"
                             "\t@!%p1 bra \t$L__BB0_2;\n\tld.global.b32 \t%r5, [%rd1];\n$L__BB0_2:\n")
        self.assertIn("access 0 of 4 bytes was executed by no thread that was tried", error)

    def test_functions_and_kernels_belong_together(self):
        functions, errors = module.check("// PTX\n" + HEAD + "\tret;\n\n}\n", [])
        self.assertEqual((functions, len(errors)), (1, 1))
        self.assertEqual(module.check("", []), (0, []))


if __name__ == "__main__":
    unittest.main()
