"""Kernels of the primitives, written by cardan.constraints.codegen; not to be edited."""

from math import atan2, cos, sin, sqrt  # noqa: F401

from cardan._jit import inner
from cardan.math._kernels import (  # noqa: F401
    angle_ratio,
    angle_ratio_s,
    angle_ratio_ss,
    inverse_norm3,
    norm3,
    sign4,
    unit3,
)


@inner
def coincidence(x, c, f, df):
    """f and ∂f/∂x of coincidence: 3 rows, 6 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    t6 = x3 - x0
    t7 = x4 - x1
    t8 = x5 - x2
    f[0] = t6
    f[1] = t7
    f[2] = t8
    for i in range(18):
        df[i] = 0.0
    df[0] = -1.0
    df[7] = -1.0
    df[14] = -1.0
    df[3] = 1.0
    df[10] = 1.0
    df[17] = 1.0


@inner
def dot_1(x, c, f, df):
    """f and ∂f/∂x of dot_1: 1 rows, 6 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    t6 = x0 * x3
    t7 = x1 * x4
    t8 = t6 + t7
    t9 = x2 * x5
    t10 = t8 + t9
    f[0] = t10
    for i in range(6):
        df[i] = 0.0
    df[0] = x3
    df[1] = x4
    df[2] = x5
    df[3] = x0
    df[4] = x1
    df[5] = x2


@inner
def dot_2(x, c, f, df):
    """f and ∂f/∂x of dot_2: 1 rows, 9 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    x6 = x[6]
    x7 = x[7]
    x8 = x[8]
    c0 = c[0]
    t10 = x6 - x3
    t11 = x7 - x4
    t12 = x8 - x5
    t13 = x0 * t10
    t14 = x1 * t11
    t15 = t13 + t14
    t16 = x2 * t12
    t17 = t15 + t16
    t18 = t17 - c0
    t22 = x0 * -1.0
    t23 = x1 * -1.0
    t24 = x2 * -1.0
    f[0] = t18
    for i in range(9):
        df[i] = 0.0
    df[0] = t10
    df[1] = t11
    df[2] = t12
    df[3] = t22
    df[4] = t23
    df[5] = t24
    df[6] = x0
    df[7] = x1
    df[8] = x2


@inner
def angle(x, c, f, df):
    """f and ∂f/∂x of angle: 1 rows, 6 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    c0 = c[0]
    t7 = x1 * x5
    t8 = x2 * x4
    t9 = t7 - t8
    t10 = x2 * x3
    t11 = x0 * x5
    t12 = t10 - t11
    t13 = x0 * x4
    t14 = x1 * x3
    t15 = t13 - t14
    t16 = norm3(t9, t12, t15)
    t17 = x0 * x3
    t18 = x1 * x4
    t19 = t17 + t18
    t20 = x2 * x5
    t21 = t19 + t20
    t22 = atan2(t16, t21)
    t23 = t22 - c0
    t27 = x5 * -1.0
    t28 = unit3(1, t9, t12, t15)
    t29 = t27 * t28
    t30 = unit3(2, t9, t12, t15)
    t31 = x4 * t30
    t32 = t29 + t31
    t33 = t16 * t16
    t34 = t21 * t21
    t35 = t33 + t34
    t36 = t21 / t35
    t37 = t32 * t36
    t38 = t16 * -1.0
    t39 = t38 / t35
    t40 = x3 * t39
    t41 = t37 + t40
    t42 = x3 * -1.0
    t43 = unit3(0, t9, t12, t15)
    t44 = x5 * t43
    t45 = t30 * t42
    t46 = t44 + t45
    t47 = t36 * t46
    t48 = x4 * t39
    t49 = t47 + t48
    t50 = x4 * -1.0
    t51 = t43 * t50
    t52 = x3 * t28
    t53 = t51 + t52
    t54 = t36 * t53
    t55 = x5 * t39
    t56 = t54 + t55
    t57 = x1 * -1.0
    t58 = x2 * t28
    t59 = t30 * t57
    t60 = t58 + t59
    t61 = t36 * t60
    t62 = x0 * t39
    t63 = t61 + t62
    t64 = x2 * -1.0
    t65 = t43 * t64
    t66 = x0 * t30
    t67 = t65 + t66
    t68 = t36 * t67
    t69 = x1 * t39
    t70 = t68 + t69
    t71 = x0 * -1.0
    t72 = x1 * t43
    t73 = t28 * t71
    t74 = t72 + t73
    t75 = t36 * t74
    t76 = x2 * t39
    t77 = t75 + t76
    f[0] = t23
    for i in range(6):
        df[i] = 0.0
    df[0] = t41
    df[1] = t49
    df[2] = t56
    df[3] = t63
    df[4] = t70
    df[5] = t77


@inner
def angle_cosine(x, c, f, df):
    """f and ∂f/∂x of angle_cosine: 1 rows, 6 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    c0 = c[0]
    t7 = x0 * x3
    t8 = x1 * x4
    t9 = t7 + t8
    t10 = x2 * x5
    t11 = t9 + t10
    t12 = cos(c0)
    t13 = t11 - t12
    f[0] = t13
    for i in range(6):
        df[i] = 0.0
    df[0] = x3
    df[1] = x4
    df[2] = x5
    df[3] = x0
    df[4] = x1
    df[5] = x2


@inner
def distance(x, c, f, df):
    """f and ∂f/∂x of distance: 1 rows, 6 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    c0 = c[0]
    t7 = x3 - x0
    t8 = x4 - x1
    t9 = x5 - x2
    t10 = norm3(t7, t8, t9)
    t11 = t10 - c0
    t15 = unit3(0, t7, t8, t9)
    t16 = -1.0 * t15
    t17 = unit3(1, t7, t8, t9)
    t18 = -1.0 * t17
    t19 = unit3(2, t7, t8, t9)
    t20 = -1.0 * t19
    f[0] = t11
    for i in range(6):
        df[i] = 0.0
    df[0] = t16
    df[1] = t18
    df[2] = t20
    df[3] = t15
    df[4] = t17
    df[5] = t19


@inner
def distance_squared(x, c, f, df):
    """f and ∂f/∂x of distance_squared: 1 rows, 6 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    c0 = c[0]
    t7 = x3 - x0
    t8 = x4 - x1
    t9 = x5 - x2
    t10 = t7 * t7
    t11 = t8 * t8
    t12 = t10 + t11
    t13 = t9 * t9
    t14 = t12 + t13
    t15 = c0 * c0
    t16 = t14 - t15
    t20 = t7 * -1.0
    t21 = t20 + t20
    t22 = t8 * -1.0
    t23 = t22 + t22
    t24 = t9 * -1.0
    t25 = t24 + t24
    t26 = t7 + t7
    t27 = t8 + t8
    t28 = t9 + t9
    f[0] = t16
    for i in range(6):
        df[i] = 0.0
    df[0] = t21
    df[1] = t23
    df[2] = t25
    df[3] = t26
    df[4] = t27
    df[5] = t28


@inner
def aligned(x, c, f, df):
    """f and ∂f/∂x of aligned: 3 rows, 12 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    x6 = x[6]
    x7 = x[7]
    x8 = x[8]
    x9 = x[9]
    x10 = x[10]
    x11 = x[11]
    t12 = x0 * x9
    t13 = x1 * x10
    t14 = t12 + t13
    t15 = x2 * x11
    t16 = t14 + t15
    t17 = x3 * x9
    t18 = x4 * x10
    t19 = t17 + t18
    t20 = x5 * x11
    t21 = t19 + t20
    t22 = x6 * x9
    t23 = x7 * x10
    t24 = t22 + t23
    t25 = x8 * x11
    t26 = t24 + t25
    t28 = t26 - 1.0
    f[0] = t16
    f[1] = t21
    f[2] = t28
    for i in range(36):
        df[i] = 0.0
    df[0] = x9
    df[1] = x10
    df[2] = x11
    df[15] = x9
    df[16] = x10
    df[17] = x11
    df[30] = x9
    df[31] = x10
    df[32] = x11
    df[9] = x0
    df[21] = x3
    df[33] = x6
    df[10] = x1
    df[22] = x4
    df[34] = x7
    df[11] = x2
    df[23] = x5
    df[35] = x8


@inner
def rotation_vector(x, c, f, df):
    """f and ∂f/∂x of rotation_vector: 3 rows, 8 feature components."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    x6 = x[6]
    x7 = x[7]
    t8 = x0 * x4
    t9 = x1 * x5
    t10 = t8 + t9
    t11 = x2 * x6
    t12 = t10 + t11
    t13 = x3 * x7
    t14 = t12 + t13
    t15 = x0 * x5
    t16 = x1 * x4
    t17 = t15 - t16
    t18 = x2 * x7
    t19 = t17 - t18
    t20 = x3 * x6
    t21 = t19 + t20
    t22 = x0 * x6
    t23 = x2 * x4
    t24 = t22 - t23
    t25 = x3 * x5
    t26 = t24 - t25
    t27 = x1 * x7
    t28 = t26 + t27
    t29 = x0 * x7
    t30 = x3 * x4
    t31 = t29 - t30
    t32 = x1 * x6
    t33 = t31 - t32
    t34 = x2 * x5
    t35 = t33 + t34
    t36 = sign4(t14, t21, t28, t35)
    t37 = t21 * t21
    t38 = t28 * t28
    t39 = t37 + t38
    t40 = t35 * t35
    t41 = t39 + t40
    t42 = t14 * t36
    t43 = angle_ratio(t41, t42)
    t44 = t36 * t43
    t45 = t21 * t44
    t46 = t28 * t44
    t47 = t35 * t44
    t50 = x5 * t21
    t51 = t50 + t50
    t52 = x6 * t28
    t53 = t52 + t52
    t54 = t51 + t53
    t55 = x7 * t35
    t56 = t55 + t55
    t57 = t54 + t56
    t58 = x4 * t36
    t59 = angle_ratio_s(t41, t42)
    t60 = t57 * t59
    t61 = t42 * t42
    t62 = t41 + t61
    t64 = -2.0 / t62
    t65 = t58 * t64
    t66 = t60 + t65
    t67 = t36 * t66
    t68 = x5 * t44
    t69 = t21 * t67
    t70 = t68 + t69
    t71 = x6 * t44
    t72 = t28 * t67
    t73 = t71 + t72
    t74 = x7 * t44
    t75 = t35 * t67
    t76 = t74 + t75
    t78 = x4 * -1.0
    t79 = x6 * -1.0
    t80 = t21 * t78
    t81 = t80 + t80
    t82 = x7 * t28
    t83 = t82 + t82
    t84 = t81 + t83
    t85 = t35 * t79
    t86 = t85 + t85
    t87 = t84 + t86
    t88 = x5 * t36
    t89 = t59 * t87
    t90 = t64 * t88
    t91 = t89 + t90
    t92 = t36 * t91
    t93 = t44 * t78
    t94 = t21 * t92
    t95 = t93 + t94
    t96 = t28 * t92
    t97 = t74 + t96
    t98 = t44 * t79
    t99 = t35 * t92
    t100 = t98 + t99
    t101 = x7 * -1.0
    t102 = t21 * t101
    t103 = t102 + t102
    t104 = t28 * t78
    t105 = t104 + t104
    t106 = t103 + t105
    t107 = x5 * t35
    t108 = t107 + t107
    t109 = t106 + t108
    t110 = x6 * t36
    t111 = t59 * t109
    t112 = t64 * t110
    t113 = t111 + t112
    t114 = t36 * t113
    t115 = t44 * t101
    t116 = t21 * t114
    t117 = t115 + t116
    t118 = t28 * t114
    t119 = t93 + t118
    t120 = t35 * t114
    t121 = t68 + t120
    t122 = x5 * -1.0
    t123 = x6 * t21
    t124 = t123 + t123
    t125 = t28 * t122
    t126 = t125 + t125
    t127 = t124 + t126
    t128 = t35 * t78
    t129 = t128 + t128
    t130 = t127 + t129
    t131 = x7 * t36
    t132 = t59 * t130
    t133 = t64 * t131
    t134 = t132 + t133
    t135 = t36 * t134
    t136 = t21 * t135
    t137 = t71 + t136
    t138 = t44 * t122
    t139 = t28 * t135
    t140 = t138 + t139
    t141 = t35 * t135
    t142 = t93 + t141
    t143 = x1 * -1.0
    t144 = x2 * -1.0
    t145 = x3 * -1.0
    t146 = t21 * t143
    t147 = t146 + t146
    t148 = t28 * t144
    t149 = t148 + t148
    t150 = t147 + t149
    t151 = t35 * t145
    t152 = t151 + t151
    t153 = t150 + t152
    t154 = x0 * t36
    t155 = t59 * t153
    t156 = t64 * t154
    t157 = t155 + t156
    t158 = t36 * t157
    t159 = t44 * t143
    t160 = t21 * t158
    t161 = t159 + t160
    t162 = t44 * t144
    t163 = t28 * t158
    t164 = t162 + t163
    t165 = t44 * t145
    t166 = t35 * t158
    t167 = t165 + t166
    t168 = x0 * t21
    t169 = t168 + t168
    t170 = t28 * t145
    t171 = t170 + t170
    t172 = t169 + t171
    t173 = x2 * t35
    t174 = t173 + t173
    t175 = t172 + t174
    t176 = x1 * t36
    t177 = t59 * t175
    t178 = t64 * t176
    t179 = t177 + t178
    t180 = t36 * t179
    t181 = x0 * t44
    t182 = t21 * t180
    t183 = t181 + t182
    t184 = t28 * t180
    t185 = t165 + t184
    t186 = x2 * t44
    t187 = t35 * t180
    t188 = t186 + t187
    t189 = x3 * t21
    t190 = t189 + t189
    t191 = x0 * t28
    t192 = t191 + t191
    t193 = t190 + t192
    t194 = t35 * t143
    t195 = t194 + t194
    t196 = t193 + t195
    t197 = x2 * t36
    t198 = t59 * t196
    t199 = t64 * t197
    t200 = t198 + t199
    t201 = t36 * t200
    t202 = x3 * t44
    t203 = t21 * t201
    t204 = t202 + t203
    t205 = t28 * t201
    t206 = t181 + t205
    t207 = t35 * t201
    t208 = t159 + t207
    t209 = t21 * t144
    t210 = t209 + t209
    t211 = x1 * t28
    t212 = t211 + t211
    t213 = t210 + t212
    t214 = x0 * t35
    t215 = t214 + t214
    t216 = t213 + t215
    t217 = x3 * t36
    t218 = t59 * t216
    t219 = t64 * t217
    t220 = t218 + t219
    t221 = t36 * t220
    t222 = t21 * t221
    t223 = t162 + t222
    t224 = x1 * t44
    t225 = t28 * t221
    t226 = t224 + t225
    t227 = t35 * t221
    t228 = t181 + t227
    f[0] = t45
    f[1] = t46
    f[2] = t47
    for i in range(24):
        df[i] = 0.0
    df[0] = t70
    df[8] = t73
    df[16] = t76
    df[1] = t95
    df[9] = t97
    df[17] = t100
    df[2] = t117
    df[10] = t119
    df[18] = t121
    df[3] = t137
    df[11] = t140
    df[19] = t142
    df[4] = t161
    df[12] = t164
    df[20] = t167
    df[5] = t183
    df[13] = t185
    df[21] = t188
    df[6] = t204
    df[14] = t206
    df[22] = t208
    df[7] = t223
    df[15] = t226
    df[23] = t228


@inner
def evaluate_primitive(code, x, c, f, df):
    """f and ∂f/∂x of a primitive."""
    if code == 0:
        coincidence(x, c, f, df)
    elif code == 1:
        dot_1(x, c, f, df)
    elif code == 2:
        dot_2(x, c, f, df)
    elif code == 3:
        angle(x, c, f, df)
    elif code == 4:
        angle_cosine(x, c, f, df)
    elif code == 5:
        distance(x, c, f, df)
    elif code == 6:
        distance_squared(x, c, f, df)
    elif code == 7:
        aligned(x, c, f, df)
    elif code == 8:
        rotation_vector(x, c, f, df)


@inner
def coincidence_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of coincidence, 3 rows."""
    g[0] = 0.0
    g[1] = 0.0
    g[2] = 0.0


@inner
def dot_1_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of dot_1, 1 rows."""
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    t29 = v0 * v3
    t30 = t29 + t29
    t31 = v1 * v4
    t32 = t31 + t31
    t33 = t30 + t32
    t34 = v2 * v5
    t35 = t34 + t34
    t36 = t33 + t35
    g[0] = t36


@inner
def dot_2_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of dot_2, 1 rows."""
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    v6 = rate[6]
    v7 = rate[7]
    v8 = rate[8]
    t29 = v6 - v3
    t33 = v7 - v4
    t38 = v8 - v5
    t43 = v0 * t29
    t44 = t43 + t43
    t45 = v1 * t33
    t46 = t45 + t45
    t47 = t44 + t46
    t48 = v2 * t38
    t49 = t48 + t48
    t50 = t47 + t49
    g[0] = t50


@inner
def angle_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of angle, 1 rows."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    t7 = x1 * x5
    t8 = x2 * x4
    t9 = t7 - t8
    t10 = x2 * x3
    t11 = x0 * x5
    t12 = t10 - t11
    t13 = x0 * x4
    t14 = x1 * x3
    t15 = t13 - t14
    t16 = norm3(t9, t12, t15)
    t17 = x0 * x3
    t18 = x1 * x4
    t19 = t17 + t18
    t20 = x2 * x5
    t21 = t19 + t20
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    t31 = x5 * v1
    t32 = x1 * v5
    t33 = t31 + t32
    t34 = x4 * v2
    t35 = x2 * v4
    t36 = t34 + t35
    t37 = t33 - t36
    t38 = x3 * v2
    t39 = x2 * v3
    t40 = t38 + t39
    t41 = x5 * v0
    t42 = x0 * v5
    t43 = t41 + t42
    t44 = t40 - t43
    t45 = x4 * v0
    t46 = x0 * v4
    t47 = t45 + t46
    t48 = x3 * v1
    t49 = x1 * v3
    t50 = t48 + t49
    t51 = t47 - t50
    t52 = unit3(0, t9, t12, t15)
    t53 = t37 * t52
    t54 = unit3(1, t9, t12, t15)
    t55 = t44 * t54
    t56 = t53 + t55
    t57 = unit3(2, t9, t12, t15)
    t58 = t51 * t57
    t59 = t56 + t58
    t60 = x3 * v0
    t61 = x0 * v3
    t62 = t60 + t61
    t63 = x4 * v1
    t64 = x1 * v4
    t65 = t63 + t64
    t66 = t62 + t65
    t67 = x5 * v2
    t68 = x2 * v5
    t69 = t67 + t68
    t70 = t66 + t69
    t71 = t16 * t16
    t72 = t21 * t21
    t73 = t71 + t72
    t74 = t21 / t73
    t77 = t16 * -1.0
    t78 = t77 / t73
    t81 = v1 * v5
    t82 = t81 + t81
    t83 = v2 * v4
    t84 = t83 + t83
    t85 = t82 - t84
    t86 = t52 * t52
    t88 = 1.0 - t86
    t89 = inverse_norm3(t9, t12, t15)
    t90 = t88 * t89
    t91 = t37 * t90
    t92 = t52 * t54
    t93 = -1.0 * t92
    t94 = t89 * t93
    t95 = t44 * t94
    t96 = t91 + t95
    t97 = t52 * t57
    t98 = -1.0 * t97
    t99 = t89 * t98
    t100 = t51 * t99
    t101 = t96 + t100
    t102 = t52 * t85
    t103 = t37 * t101
    t104 = t102 + t103
    t105 = v2 * v3
    t106 = t105 + t105
    t107 = v0 * v5
    t108 = t107 + t107
    t109 = t106 - t108
    t110 = t37 * t94
    t111 = t54 * t54
    t112 = 1.0 - t111
    t113 = t89 * t112
    t114 = t44 * t113
    t115 = t110 + t114
    t116 = t54 * t57
    t117 = -1.0 * t116
    t118 = t89 * t117
    t119 = t51 * t118
    t120 = t115 + t119
    t121 = t54 * t109
    t122 = t44 * t120
    t123 = t121 + t122
    t124 = t104 + t123
    t125 = v0 * v4
    t126 = t125 + t125
    t127 = v1 * v3
    t128 = t127 + t127
    t129 = t126 - t128
    t130 = t37 * t99
    t131 = t44 * t118
    t132 = t130 + t131
    t133 = t57 * t57
    t134 = 1.0 - t133
    t135 = t89 * t134
    t136 = t51 * t135
    t137 = t132 + t136
    t138 = t57 * t129
    t139 = t51 * t137
    t140 = t138 + t139
    t141 = t124 + t140
    t142 = t16 * t59
    t143 = t142 + t142
    t144 = t21 * t70
    t145 = t144 + t144
    t146 = t143 + t145
    t147 = t74 * t146
    t148 = t70 - t147
    t149 = t148 / t73
    t150 = t74 * t141
    t151 = t59 * t149
    t152 = t150 + t151
    t153 = v0 * v3
    t154 = t153 + t153
    t155 = v1 * v4
    t156 = t155 + t155
    t157 = t154 + t156
    t158 = v2 * v5
    t159 = t158 + t158
    t160 = t157 + t159
    t161 = t59 * -1.0
    t162 = t78 * t146
    t163 = t161 - t162
    t164 = t163 / t73
    t165 = t78 * t160
    t166 = t70 * t164
    t167 = t165 + t166
    t168 = t152 + t167
    g[0] = t168


@inner
def angle_cosine_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of angle_cosine, 1 rows."""
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    t32 = v0 * v3
    t33 = t32 + t32
    t34 = v1 * v4
    t35 = t34 + t34
    t36 = t33 + t35
    t37 = v2 * v5
    t38 = t37 + t37
    t39 = t36 + t38
    g[0] = t39


@inner
def distance_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of distance, 1 rows."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    t7 = x3 - x0
    t8 = x4 - x1
    t9 = x5 - x2
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    t19 = v3 - v0
    t20 = v4 - v1
    t21 = v5 - v2
    t22 = unit3(0, t7, t8, t9)
    t24 = unit3(1, t7, t8, t9)
    t27 = unit3(2, t7, t8, t9)
    t30 = t22 * t22
    t32 = 1.0 - t30
    t33 = inverse_norm3(t7, t8, t9)
    t34 = t32 * t33
    t35 = t19 * t34
    t36 = t22 * t24
    t38 = t36 * -1.0
    t39 = t33 * t38
    t40 = t20 * t39
    t41 = t35 + t40
    t42 = t22 * t27
    t43 = -1.0 * t42
    t44 = t33 * t43
    t45 = t21 * t44
    t46 = t41 + t45
    t47 = t19 * t46
    t48 = t19 * t39
    t49 = t24 * t24
    t50 = 1.0 - t49
    t51 = t33 * t50
    t52 = t20 * t51
    t53 = t48 + t52
    t54 = t24 * t27
    t55 = -1.0 * t54
    t56 = t33 * t55
    t57 = t21 * t56
    t58 = t53 + t57
    t59 = t20 * t58
    t60 = t47 + t59
    t61 = t19 * t44
    t62 = t20 * t56
    t63 = t61 + t62
    t64 = t27 * t27
    t65 = 1.0 - t64
    t66 = t33 * t65
    t67 = t21 * t66
    t68 = t63 + t67
    t69 = t21 * t68
    t70 = t60 + t69
    g[0] = t70


@inner
def distance_squared_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of distance_squared, 1 rows."""
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    t24 = v3 - v0
    t27 = v4 - v1
    t31 = v5 - v2
    t35 = t24 * t24
    t36 = t35 + t35
    t37 = t27 * t27
    t38 = t37 + t37
    t39 = t36 + t38
    t40 = t31 * t31
    t41 = t40 + t40
    t42 = t39 + t41
    g[0] = t42


@inner
def aligned_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of aligned, 3 rows."""
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    v6 = rate[6]
    v7 = rate[7]
    v8 = rate[8]
    v9 = rate[9]
    v10 = rate[10]
    v11 = rate[11]
    t75 = v0 * v9
    t76 = t75 + t75
    t77 = v1 * v10
    t78 = t77 + t77
    t79 = t76 + t78
    t80 = v2 * v11
    t81 = t80 + t80
    t82 = t79 + t81
    t83 = v3 * v9
    t84 = t83 + t83
    t85 = v4 * v10
    t86 = t85 + t85
    t87 = t84 + t86
    t88 = v5 * v11
    t89 = t88 + t88
    t90 = t87 + t89
    t91 = v6 * v9
    t92 = t91 + t91
    t93 = v7 * v10
    t94 = t93 + t93
    t95 = t92 + t94
    t96 = v8 * v11
    t97 = t96 + t96
    t98 = t95 + t97
    g[0] = t82
    g[1] = t90
    g[2] = t98


@inner
def rotation_vector_curvature(x, rate, c, g):
    """ẋᵀ f_xx ẋ of rotation_vector, 3 rows."""
    x0 = x[0]
    x1 = x[1]
    x2 = x[2]
    x3 = x[3]
    x4 = x[4]
    x5 = x[5]
    x6 = x[6]
    x7 = x[7]
    t8 = x0 * x4
    t9 = x1 * x5
    t10 = t8 + t9
    t11 = x2 * x6
    t12 = t10 + t11
    t13 = x3 * x7
    t14 = t12 + t13
    t15 = x0 * x5
    t16 = x1 * x4
    t17 = t15 - t16
    t18 = x2 * x7
    t19 = t17 - t18
    t20 = x3 * x6
    t21 = t19 + t20
    t22 = x0 * x6
    t23 = x2 * x4
    t24 = t22 - t23
    t25 = x3 * x5
    t26 = t24 - t25
    t27 = x1 * x7
    t28 = t26 + t27
    t29 = x0 * x7
    t30 = x3 * x4
    t31 = t29 - t30
    t32 = x1 * x6
    t33 = t31 - t32
    t34 = x2 * x5
    t35 = t33 + t34
    t36 = sign4(t14, t21, t28, t35)
    t37 = t21 * t21
    t38 = t28 * t28
    t39 = t37 + t38
    t40 = t35 * t35
    t41 = t39 + t40
    t42 = t14 * t36
    t43 = angle_ratio(t41, t42)
    t44 = t36 * t43
    v0 = rate[0]
    v1 = rate[1]
    v2 = rate[2]
    v3 = rate[3]
    v4 = rate[4]
    v5 = rate[5]
    v6 = rate[6]
    v7 = rate[7]
    t57 = x5 * v0
    t58 = x0 * v5
    t59 = t57 + t58
    t60 = x4 * v1
    t61 = x1 * v4
    t62 = t60 + t61
    t63 = t59 - t62
    t64 = x7 * v2
    t65 = x2 * v7
    t66 = t64 + t65
    t67 = t63 - t66
    t68 = x6 * v3
    t69 = x3 * v6
    t70 = t68 + t69
    t71 = t67 + t70
    t72 = x4 * v0
    t73 = x0 * v4
    t74 = t72 + t73
    t75 = x5 * v1
    t76 = x1 * v5
    t77 = t75 + t76
    t78 = t74 + t77
    t79 = x6 * v2
    t80 = x2 * v6
    t81 = t79 + t80
    t82 = t78 + t81
    t83 = x7 * v3
    t84 = x3 * v7
    t85 = t83 + t84
    t86 = t82 + t85
    t87 = x6 * v0
    t88 = x0 * v6
    t89 = t87 + t88
    t90 = x4 * v2
    t91 = x2 * v4
    t92 = t90 + t91
    t93 = t89 - t92
    t94 = x5 * v3
    t95 = x3 * v5
    t96 = t94 + t95
    t97 = t93 - t96
    t98 = x7 * v1
    t99 = x1 * v7
    t100 = t98 + t99
    t101 = t97 + t100
    t102 = x7 * v0
    t103 = x0 * v7
    t104 = t102 + t103
    t105 = x4 * v3
    t106 = x3 * v4
    t107 = t105 + t106
    t108 = t104 - t107
    t109 = x6 * v1
    t110 = x1 * v6
    t111 = t109 + t110
    t112 = t108 - t111
    t113 = x5 * v2
    t114 = x2 * v5
    t115 = t113 + t114
    t116 = t112 + t115
    t117 = t21 * t71
    t118 = t117 + t117
    t119 = t28 * t101
    t120 = t119 + t119
    t121 = t118 + t120
    t122 = t35 * t116
    t123 = t122 + t122
    t124 = t121 + t123
    t125 = t36 * t86
    t126 = angle_ratio_s(t41, t42)
    t127 = t124 * t126
    t128 = t42 * t42
    t129 = t41 + t128
    t131 = -2.0 / t129
    t132 = t125 * t131
    t133 = t127 + t132
    t134 = t36 * t133
    t144 = v0 * v5
    t145 = t144 + t144
    t146 = v1 * v4
    t147 = t146 + t146
    t148 = t145 - t147
    t149 = v2 * v7
    t150 = t149 + t149
    t151 = t148 - t150
    t152 = v3 * v6
    t153 = t152 + t152
    t154 = t151 + t153
    t155 = t71 * t134
    t156 = t44 * t154
    t157 = t155 + t156
    t158 = t71 * t71
    t159 = t21 * t154
    t160 = t158 + t159
    t161 = t160 + t160
    t162 = v0 * v6
    t163 = t162 + t162
    t164 = v2 * v4
    t165 = t164 + t164
    t166 = t163 - t165
    t167 = v3 * v5
    t168 = t167 + t167
    t169 = t166 - t168
    t170 = v1 * v7
    t171 = t170 + t170
    t172 = t169 + t171
    t173 = t101 * t101
    t174 = t28 * t172
    t175 = t173 + t174
    t176 = t175 + t175
    t177 = t161 + t176
    t178 = v0 * v7
    t179 = t178 + t178
    t180 = v3 * v4
    t181 = t180 + t180
    t182 = t179 - t181
    t183 = v1 * v6
    t184 = t183 + t183
    t185 = t182 - t184
    t186 = v2 * v5
    t187 = t186 + t186
    t188 = t185 + t187
    t189 = t116 * t116
    t190 = t35 * t188
    t191 = t189 + t190
    t192 = t191 + t191
    t193 = t177 + t192
    t194 = angle_ratio_ss(t41, t42)
    t195 = t124 * t194
    t196 = t129 * t129
    t198 = 2.0 / t196
    t199 = t125 * t198
    t200 = t195 + t199
    t201 = t126 * t193
    t202 = t124 * t200
    t203 = t201 + t202
    t204 = v0 * v4
    t205 = t204 + t204
    t206 = v1 * v5
    t207 = t206 + t206
    t208 = t205 + t207
    t209 = v2 * v6
    t210 = t209 + t209
    t211 = t208 + t210
    t212 = v3 * v7
    t213 = t212 + t212
    t214 = t211 + t213
    t215 = t36 * t214
    t216 = t42 * t125
    t217 = t216 + t216
    t218 = t124 + t217
    t219 = t131 * t218
    t221 = t219 * -1.0
    t222 = t221 / t129
    t223 = t131 * t215
    t224 = t125 * t222
    t225 = t223 + t224
    t226 = t203 + t225
    t227 = t36 * t226
    t228 = t21 * t227
    t229 = t155 + t228
    t230 = t157 + t229
    t231 = t101 * t134
    t232 = t44 * t172
    t233 = t231 + t232
    t234 = t28 * t227
    t235 = t231 + t234
    t236 = t233 + t235
    t237 = t116 * t134
    t238 = t44 * t188
    t239 = t237 + t238
    t240 = t35 * t227
    t241 = t237 + t240
    t242 = t239 + t241
    g[0] = t230
    g[1] = t236
    g[2] = t242


@inner
def primitive_curvature(code, x, rate, c, g):
    """ẋᵀ f_xx ẋ."""
    if code == 0:
        coincidence_curvature(x, rate, c, g)
    elif code == 1:
        dot_1_curvature(x, rate, c, g)
    elif code == 2:
        dot_2_curvature(x, rate, c, g)
    elif code == 3:
        angle_curvature(x, rate, c, g)
    elif code == 4:
        angle_cosine_curvature(x, rate, c, g)
    elif code == 5:
        distance_curvature(x, rate, c, g)
    elif code == 6:
        distance_squared_curvature(x, rate, c, g)
    elif code == 7:
        aligned_curvature(x, rate, c, g)
    elif code == 8:
        rotation_vector_curvature(x, rate, c, g)
