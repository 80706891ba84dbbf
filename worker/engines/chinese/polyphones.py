"""Which reading a character has where a dictionary of words leaves it open. Pure tables.

Knows what stands left and right of a character inside a stretch without marks, and whether it is a
word of its own; no dictionary, no phonemes. A character that is not here keeps its usual reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_NUMERALS = "一 二 两 三 四 五 六 七 八 九 十 百 千 万 亿 几 半"
_COUNTED = f"{_NUMERALS} 这 那 每 首 末 各 某 哪"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a character stands: the text on both sides of it.

    `right` is empty where the character ends a longer word that no particle follows. `first`: it
    begins its word; `alone`: it is one; `previous` is the word before its own, "" at the beginning.
    """

    left: str
    right: str
    previous: str
    first: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class _Rule:
    """A reading, and what stands before or after it: one of several, "" is anything."""

    reading: str
    before: str = ""
    after: str = ""
    alone: bool = False
    first: bool = False

    def holds(self, place: Place) -> bool:
        """Whether all that is asked for is there."""
        if self.before and not place.left.endswith(tuple(self.before.split())):
            return False
        if self.after and not place.right.startswith(tuple(self.after.split())):
            return False
        return (place.first or not self.first) and (place.alone or not self.alone)


def reading_of(character: str, place: Place) -> str | None:
    """The reading there, as pinyin with a figure for the tone; None: the usual one."""
    if character == "地" and _makes_an_adverb(place):
        return "de5"
    rules = _RULES.get(character, ())
    return next((rule.reading for rule in rules if rule.holds(place)), _USUAL.get(character))


def _makes_an_adverb(place: Place) -> bool:
    """Whether a 地 is the particle: 慢慢 地 走, slowly; but 在 地 上, on the ground."""
    led = len(place.previous) > 1 and bool(place.right)
    return led and (place.alone or (place.first and place.right[0] in _DEEDS))


_DEEDS = "说走跑看笑问想做坐站吃唱哭喊叫回点摇拿放把对向在望讲答听写读给提告推打转抬低伸挥握抱"
# The first rule that holds is taken.
_RULES: Mapping[str, tuple[_Rule, ...]] = {
    "得": (
        _Rule("de2", after="到 知 分 失 罪 奖 病 逞 第 以", first=True),
        _Rule("de2", before="就 才 都 也 又 他 她 我", after="了 过", alone=True),
        _Rule("dei3", before="我 你 您 他 她 它 们 谁 就 还 总 必 也 又 可 才 都", alone=True),
        _Rule("de5"),
    ),
    "地": (
        _Rule("de5", before="轻轻 慢慢 静静 悄悄 渐渐 深深 紧紧 默默 狠狠 匆匆 偷偷 微微"),
        _Rule("de5", before="牢牢 远远 高高 好好 缓缓 呆呆 细细 久久 重重 偏偏 不停 不断"),
    ),
    "了": (
        _Rule("liao3", before="受不 忘不 少不 免不 走不 吃不 做不 干不 去不 来不 用不 办不"),
        _Rule("liao3", before="算不 错不 离不 死不 跑不 到不 过不 管不 帮不 改不 睡不 等不"),
        _Rule("le5"),
    ),
    "着": (_Rule("zhao2", before="睡 睡不 找不 找得 用不 够不 犯不"), _Rule("zhe5")),
    "长": (
        _Rule("chang2", before="时间 日子 很 太 更 最 变 拉 延 多 不 好 么 越 较 加 够"),
        _Rule("zhang3", after="得 出 成 满 高 胖 相 势 在 了 着 草 牙 个 辈 老 女 子"),
        _Rule("chang2", first=True),
        _Rule("zhang3", before="生 增 助 成 校 院 市 县 部 队 班 组 会 社 行 科 处 所 局"),
        _Rule("zhang3", before="厅 省 州 村 镇 乡 家 酋 船 机 站 连 营 舰 书 团 司 兄 学 师"),
        _Rule("chang2"),
    ),
    "还": (_Rule("huan2", after="书 钱 债 款 账 帐 贷 了书 了钱 我钱 你钱"), _Rule("hai2")),
    "重": (
        _Rule("chong2", after="做 来 写 复 建 组 启 装 印 申 读 演 唱 叠 播 开 返 回", first=True),
        _Rule("chong2", after="逢 拍 译 编 排 设 置 试 发 修 算 新 走 买 现 名 温 画", first=True),
        _Rule("chong2", before="双 两 三 万"),
    ),
    "行": (
        _Rule("hang2", after="业 长"),
        _Rule("xing2", after="人"),
        _Rule("hang2", before=f"{_COUNTED} 银 商 支 分 央"),
    ),
    "为": (
        _Rule("wei2", before="成 作 认 以 称 视 化 变 分 定 设 改 译 写 名 列 选 评 誉 任 推"),
        _Rule("wei2", before="尊 拜 沦 转 折 合 增 减 降 升 缩 扩 均 皆 较 更 最 尤 极 颇 甚"),
        _Rule("wei2", before="宽 高 积 量 度 数", after=_NUMERALS),
        _Rule("wei4"),
    ),
    "只": (
        _Rule("zhi3", after="是 有 能 会 要 想 好 剩 不 见 因 怕 需 顾"),
        _Rule("zhi1", before=_COUNTED),
        _Rule("zhi3"),
    ),
    "种": (
        _Rule("zhong3", before=f"{_COUNTED} 何 此 品 物 人 有 多"),
        _Rule("zhong4", after="树 花 草 地 菜 田 植 粮 瓜 果 稻 麦 玉米 豆 茶 了 下 过 上 满"),
        _Rule("zhong3"),
    ),
    "中": (_Rule("zhong4", after="奖 毒 弹 计 暑 招 枪 标 彩 邪", first=True), _Rule("zhong1")),
    "数": (_Rule("shu3", after="一 着 了 到 不 星", first=True), _Rule("shu4")),
    "干": (
        _Rule("gan1", before="晒 晾 擦 烘 风 吹 烤 饼 萄 豆 口 太 很 肉 若"),
        _Rule("gan1", after="净 燥 旱 脆 杯 粮 涉 扰 枯 涩"),
        _Rule("gan4"),
    ),
    "当": (_Rule("dang4", after="作 成 做 真 铺"), _Rule("dang1")),
    "教": (
        _Rule("jiao1", after="我 你 您 他 她 它 会 书 给 过 小 学生 孩", first=True),
        _Rule("jiao1", alone=True),
    ),
    "转": (_Rule("zhuan4", after="圈 了一圈 了几圈 了两圈 来转去 个不停 悠"), _Rule("zhuan3")),
    "调": (
        _Rule("diao4", after="查 动 研 遣 派 离 走 职 任 兵 配 用 令 入 出 换 度 回 取"),
        _Rule("diao4", before="音 语 声 腔 曲 强 格 单 色 基 论 步 笔"),
        _Rule("tiao2"),
    ),
    "倒": (
        _Rule("dao4", after="了一杯 了杯 了半杯 了两杯 了些 茶 水 酒 了水 了茶 了酒"),
        _Rule("dao3", after="下 塌 闭 霉 台 地 了 在 卖"),
        _Rule("dao3", before="摔 跌 推 打 昏 晕 病 滑 绊 卧 醉 摇 压 拉 撞 扑 吹 放 树 墙"),
        _Rule("dao4"),
    ),
    "背": (_Rule("bei1", after="包 起 负 上 个 了 着书 着包 着一"), _Rule("bei4")),
    "朝": (_Rule("zhao1", after="阳 气 夕 霞"), _Rule("zhao1", before="今"), _Rule("chao2")),
    "切": (
        _Rule("qie1", alone=True),
        _Rule("qie1", after="菜 肉 断 开 割 成 片 块 丝 蛋 水 除 换 入 磋 得 了 好 掉", first=True),
    ),
    "差": (_Rule("cha1", before="误 时 温 偏 落 反 逆 顺 级 视 色 之"), _Rule("cha4")),
    "觉": (_Rule("jiao4", before="睡 睡了一 一 午 懒 睡不着 睡个好 睡个"), _Rule("jue2")),
    "弹": (_Rule("tan2", after="琴 钢 吉 奏 唱 了 起 跳 得 着 曲 一"), _Rule("dan4")),
    "量": (_Rule("liang2", after="体 血 身 了 一 尺", first=True), _Rule("liang4")),
    "盛": (_Rule("cheng2", after="饭 汤 了 满 着 一 水", first=True), _Rule("sheng4")),
    "炸": (_Rule("zha2", after="鸡 鱼 薯 酱 油 酥 虾"), _Rule("zha4")),
    "假": (_Rule("jia4", before="请 病 产 暑 寒 休 年 事 婚 放 长 度"), _Rule("jia3")),
    "率": (_Rule("shuai4", after="领 队 团 先 部 众"), _Rule("lv4")),
    "处": (_Rule("chu4", before=f"{_COUNTED} 到 好 坏 用 益 四 长 深 远 近 高 低 何"),),
    "卷": (_Rule("juan4", before=f"{_NUMERALS} 试 答 考"), _Rule("juan3")),
    "载": (_Rule("zai3", before="记 刊 登 连 转 下 半 千"), _Rule("zai4")),
    "曾": (_Rule("zeng1", after="先生 女士 老师 国 子 家 某 祖 孙"), _Rule("ceng2")),
    "尽": (_Rule("jin3", after="量 管 快 早 可能"), _Rule("jin4")),
    "发": (_Rule("fa4", before="头 白 黑 卷 烫 染 毛 理 银 金"), _Rule("fa1")),
    "薄": (_Rule("bo2", before="单 浅 微 淡 稀"), _Rule("bao2")),
    "累": (_Rule("lei3", before="积"), _Rule("lei3", after="积 计 及"), _Rule("lei4")),
    "乐": (
        _Rule("yue4", before="典 滚 弦 奏 器 民 响 爵士 配 声"),
        _Rule("yue4", after="队 器 曲 谱 章 团 坛 手"),
        _Rule("le4"),
    ),
    "分": (_Rule("fen4", before="缘 养 情"), _Rule("fen1")),
}
# Where the dictionary's usual reading is not that of the language.
_PAIRS = (
    "佛:fo2 寻:xun2 肚:du4 颇:po1 脊:ji3 耶:ye1 晃:huang4 仆:pu2 咽:yan4 葛:ge3 甸:dian4 "
    "框:kuang4 椎:zhui1 伽:jia1 琢:zhuo2 煞:sha4 豁:huo4 拽:zhuai4 咧:lie3 靡:mi3 翘:qiao4 "
    "揣:chuai3 茸:rong2 攒:zan3 磅:bang4 茄:qie2 扛:kang2 杠:gang4 蚌:bang4 怔:zheng4 似:si4 "
    "贾:jia3 勒:le4 冠:guan4 荷:he2 哇:wa5 呀:ya5 啦:la5 吧:ba5 呢:ne5 粘:zhan1"
)
_USUAL: Mapping[str, str] = dict(pair.split(":") for pair in _PAIRS.split())
