//! Tables for the exponential and the logarithm, as bit patterns of the correctly rounded values.

/// Converts bit patterns to numbers.
const fn values<const N: usize>(bits: [u64; N]) -> [f64; N] {
    let mut values = [0.0; N];
    let mut i = 0;
    while i < N {
        values[i] = f64::from_bits(bits[i]);
        i += 1;
    }
    values
}

/// 2^(i/128) for i = 0..128.
#[rustfmt::skip]
pub(super) static EXP2: [f64; 128] = values([
    0x3ff0_0000_0000_0000, 0x3ff0_163d_a9fb_3335, 0x3ff0_2c9a_3e77_8061, 0x3ff0_4315_e86e_7f85,
    0x3ff0_59b0_d315_8574, 0x3ff0_706b_29dd_f6de, 0x3ff0_8745_1875_9bc8, 0x3ff0_9e3e_cac6_f383,
    0x3ff0_b558_6cf9_890f, 0x3ff0_cc92_2b72_47f7, 0x3ff0_e3ec_32d3_d1a2, 0x3ff0_fb66_affe_d31b,
    0x3ff1_1301_d012_5b51, 0x3ff1_2abd_c06c_31cc, 0x3ff1_429a_aea9_2de0, 0x3ff1_5a98_c8a5_8e51,
    0x3ff1_72b8_3c7d_517b, 0x3ff1_8af9_388c_8dea, 0x3ff1_a35b_eb6f_cb75, 0x3ff1_bbe0_8404_5cd4,
    0x3ff1_d487_3168_b9aa, 0x3ff1_ed50_22fc_d91d, 0x3ff2_063b_8862_8cd6, 0x3ff2_1f49_917d_dc96,
    0x3ff2_387a_6e75_6238, 0x3ff2_51ce_4fb2_a63f, 0x3ff2_6b45_65e2_7cdd, 0x3ff2_84df_e1f5_6381,
    0x3ff2_9e9d_f51f_dee1, 0x3ff2_b87f_d0da_d990, 0x3ff2_d285_a6e4_030b, 0x3ff2_ecaf_a93e_2f56,
    0x3ff3_06fe_0a31_b715, 0x3ff3_2170_fc4c_d831, 0x3ff3_3c08_b264_16ff, 0x3ff3_56c5_5f92_9ff1,
    0x3ff3_71a7_373a_a9cb, 0x3ff3_8cae_6d05_d866, 0x3ff3_a7db_34e5_9ff7, 0x3ff3_c32d_c313_a8e5,
    0x3ff3_dea6_4c12_3422, 0x3ff3_fa45_04ac_801c, 0x3ff4_160a_21f7_2e2a, 0x3ff4_31f5_d950_a897,
    0x3ff4_4e08_6061_892d, 0x3ff4_6a41_ed1d_0057, 0x3ff4_86a2_b5c1_3cd0, 0x3ff4_a32a_f0d7_d3de,
    0x3ff4_bfda_d536_2a27, 0x3ff4_dcb2_99fd_dd0d, 0x3ff4_f9b2_769d_2ca7, 0x3ff5_16da_a2cf_6642,
    0x3ff5_342b_569d_4f82, 0x3ff5_51a4_ca5d_920f, 0x3ff5_6f47_36b5_27da, 0x3ff5_8d12_d497_c7fd,
    0x3ff5_ab07_dd48_5429, 0x3ff5_c926_8a59_46b7, 0x3ff5_e76f_15ad_2148, 0x3ff6_05e1_b976_dc09,
    0x3ff6_247e_b03a_5585, 0x3ff6_4346_34cc_c320, 0x3ff6_6238_8255_2225, 0x3ff6_8155_d44c_a973,
    0x3ff6_a09e_667f_3bcd, 0x3ff6_c012_750b_dabf, 0x3ff6_dfb2_3c65_1a2f, 0x3ff6_ff7d_f951_9484,
    0x3ff7_1f75_e8ec_5f74, 0x3ff7_3f9a_48a5_8174, 0x3ff7_5feb_5642_67c9, 0x3ff7_8069_4fde_5d3f,
    0x3ff7_a114_73eb_0187, 0x3ff7_c1ed_0130_c132, 0x3ff7_e2f3_36cf_4e62, 0x3ff8_0427_543e_1a12,
    0x3ff8_2589_994c_ce13, 0x3ff8_471a_4623_c7ad, 0x3ff8_68d9_9b44_92ed, 0x3ff8_8ac7_d98a_6699,
    0x3ff8_ace5_422a_a0db, 0x3ff8_cf32_16b5_448c, 0x3ff8_f1ae_9915_7736, 0x3ff9_145b_0b91_ffc6,
    0x3ff9_3737_b0cd_c5e5, 0x3ff9_5a44_cbc8_520f, 0x3ff9_7d82_9fde_4e50, 0x3ff9_a0f1_70ca_07ba,
    0x3ff9_c491_82a3_f090, 0x3ff9_e863_19e3_2323, 0x3ffa_0c66_7b5d_e565, 0x3ffa_309b_ec4a_2d33,
    0x3ffa_5503_b23e_255d, 0x3ffa_799e_1330_b358, 0x3ffa_9e6b_5579_fdbf, 0x3ffa_c36b_bfd3_f37a,
    0x3ffa_e89f_995a_d3ad, 0x3ffb_0e07_298d_b666, 0x3ffb_33a2_b84f_15fb, 0x3ffb_5972_8de5_593a,
    0x3ffb_7f76_f2fb_5e47, 0x3ffb_a5b0_30a1_064a, 0x3ffb_cc1e_904b_c1d2, 0x3ffb_f2c2_5bd7_1e09,
    0x3ffc_199b_dd85_529c, 0x3ffc_40ab_5fff_d07a, 0x3ffc_67f1_2e57_d14b, 0x3ffc_8f6d_9406_e7b5,
    0x3ffc_b720_dcef_9069, 0x3ffc_df0b_555d_c3fa, 0x3ffd_072d_4a07_897c, 0x3ffd_2f87_080d_89f2,
    0x3ffd_5818_dcfb_a487, 0x3ffd_80e3_16c9_8398, 0x3ffd_a9e6_03db_3285, 0x3ffd_d321_f301_b460,
    0x3ffd_fc97_337b_9b5f, 0x3ffe_2646_14f5_a129, 0x3ffe_502e_e78b_3ff6, 0x3ffe_7a51_fbc7_4c83,
    0x3ffe_a4af_a2a4_90da, 0x3ffe_cf48_2d8e_67f1, 0x3ffe_fa1b_ee61_5a27, 0x3fff_252b_376b_ba97,
    0x3fff_5076_5b6e_4540, 0x3fff_7bfd_ad9c_be14, 0x3fff_a7c1_819e_90d8, 0x3fff_d3c2_2b8f_71f1,
]);

/// ln(1 + i/128) for i below 53, ln(1 + i/128) - ln 2 for i from 53 to 128.
#[rustfmt::skip]
pub(super) static LN: [f64; 129] = values([
    0x0000_0000_0000_0000, 0x3f7f_e02a_6b10_6789, 0x3f8f_c0a8_b0fc_03e4, 0x3f97_b91b_07d5_b11b,
    0x3f9f_829b_0e78_3300, 0x3fa3_9e87_b9fe_bd60, 0x3fa7_7458_f632_dcfc, 0x3fab_42dd_7119_71bf,
    0x3faf_0a30_c011_62a6, 0x3fb1_6536_eea3_7ae1, 0x3fb3_41d7_961b_d1d1, 0x3fb5_1b07_3f06_183f,
    0x3fb6_f0d2_8ae5_6b4c, 0x3fb8_c345_d631_9b21, 0x3fba_926d_3a4a_d563, 0x3fbc_5e54_8f5b_c743,
    0x3fbe_2707_6e2a_f2e6, 0x3fbf_ec91_31db_eabb, 0x3fc0_d77e_7cd0_8e59, 0x3fc1_b72a_d52f_67a0,
    0x3fc2_9552_f81f_f523, 0x3fc3_71fc_201e_8f74, 0x3fc4_4d2b_6ccb_7d1e, 0x3fc5_26e5_e3a1_b438,
    0x3fc5_ff30_70a7_93d4, 0x3fc6_d60f_e719_d21d, 0x3fc7_ab89_0210_d909, 0x3fc8_7fa0_6520_c911,
    0x3fc9_525a_9cf4_56b4, 0x3fca_23bc_1fe2_b563, 0x3fca_f3c9_4e80_bff3, 0x3fcb_c286_742d_8cd6,
    0x3fcc_8ff7_c79a_9a22, 0x3fcd_5c21_6b4f_bb91, 0x3fce_2707_6e2a_f2e6, 0x3fce_f0ad_cbdc_5936,
    0x3fcf_b918_6d5e_3e2b, 0x3fd0_4025_94b4_d041, 0x3fd0_a324_e273_90e3, 0x3fd1_058b_f9ae_4ad5,
    0x3fd1_675c_abab_a60e, 0x3fd1_c898_c169_99fb, 0x3fd2_2941_fbcf_7966, 0x3fd2_895a_13de_86a3,
    0x3fd2_e8e2_bae1_1d31, 0x3fd3_47dd_9a98_7d55, 0x3fd3_a64c_5569_45ea, 0x3fd4_0430_8686_a7e4,
    0x3fd4_618b_c21c_5ec2, 0x3fd4_be5f_9577_78a1, 0x3fd5_1aad_872d_f82d, 0x3fd5_7677_1745_5a6c,
    0x3fd5_d1bd_bf58_09ca, 0xbfd6_3003_0b3a_ac49, 0xbfd5_d5bd_df59_5f30, 0xbfd5_7bf7_53c8_d1fb,
    0xbfd5_22ae_0738_a3d8, 0xbfd4_c9e0_9e17_2c3c, 0xbfd4_718d_c271_c41b, 0xbfd4_19b4_23d5_e8c7,
    0xbfd3_c252_7733_3184, 0xbfd3_6b67_76be_1117, 0xbfd3_14f1_e1d3_5ce4, 0xbfd2_bef0_7cdc_9354,
    0xbfd2_6962_1134_db92, 0xbfd2_1445_6d0e_b8d4, 0xbfd1_bf99_635a_6b95, 0xbfd1_6b5c_cbac_fb73,
    0xbfd1_178e_8227_e47c, 0xbfd0_c42d_6761_62e3, 0xbfd0_7138_604d_5862, 0xbfd0_1eae_5626_c691,
    0xbfcf_991c_6cb3_b379, 0xbfce_f5ad_e4dc_ffe6, 0xbfce_530e_ffe7_1012, 0xbfcd_b13d_b0d4_8940,
    0xbfcd_1037_f265_5e7b, 0xbfcc_6ffb_c6f0_0f71, 0xbfcb_d087_383b_d8ad, 0xbfcb_31d8_575b_ce3d,
    0xbfca_93ed_3c8a_d9e3, 0xbfc9_f6c4_0708_9664, 0xbfc9_5a5a_dcf7_017f, 0xbfc8_beaf_eb38_fe8c,
    0xbfc8_23c1_6551_a3c2, 0xbfc7_898d_8544_4c73, 0xbfc6_f012_8b75_6abc, 0xbfc6_574e_be8c_133a,
    0xbfc5_bf40_6b54_3db2, 0xbfc5_27e5_e4a1_b58d, 0xbfc4_913d_8333_b561, 0xbfc3_fb45_a599_28cc,
    0xbfc3_65fc_b015_9016, 0xbfc2_d161_0c86_813a, 0xbfc2_3d71_2a49_c202, 0xbfc1_aa2b_7e23_f72a,
    0xbfc1_178e_8227_e47c, 0xbfc0_8598_b59e_3a07, 0xbfbf_e891_39db_d566, 0xbfbe_c739_830a_1120,
    0xbfbd_a727_6384_46a2, 0xbfbc_8858_01bc_4b23, 0xbfbb_6ac8_8dad_5b1c, 0xbfba_4e76_40b1_bc38,
    0xbfb9_335e_5d59_4989, 0xbfb8_197e_2f40_e3f0, 0xbfb7_00d3_0aea_c0e1, 0xbfb5_e95a_4d97_91cb,
    0xbfb4_d311_5d20_7eac, 0xbfb3_bdf5_a7d1_ee64, 0xbfb2_aa04_a447_17a5, 0xbfb1_973b_d146_5567,
    0xbfb0_8598_b59e_3a07, 0xbfae_ea31_c006_b87c, 0xbfac_cb73_cddd_b2cc, 0xbfaa_aef2_d0fb_10fc,
    0xbfa8_94aa_149f_b343, 0xbfa6_7c94_f2d4_bb58, 0xbfa4_66ae_d42d_e3ea, 0xbfa2_52f3_2f8d_183f,
    0xbfa0_415d_89e7_4444, 0xbf9c_63d2_ec14_aaf2, 0xbf98_4925_28c8_cabf, 0xbf94_32a9_2598_0cc1,
    0xbf90_2056_5893_5847, 0xbf88_2448_a388_a2aa, 0xbf80_1015_7588_de71, 0xbf70_0805_5958_8b35,
    0x0000_0000_0000_0000,
]);

#[cfg(test)]
mod tests {
    use super::{EXP2, LN};

    #[test]
    fn entries_match_their_formulas() {
        for (i, got) in EXP2.into_iter().enumerate() {
            let want = (i as f64 / 128.0).exp2();
            assert!((got / want - 1.0).abs() < 4e-16, "{i}: {got} {want}");
        }
        for (i, got) in LN.into_iter().enumerate() {
            let c = 1.0 + i as f64 / 128.0;
            let want = if i < 53 { c.ln() } else { (0.5 * c).ln() };
            assert!(
                (got - want).abs() <= 4e-16 * want.abs(),
                "{i}: {got} {want}"
            );
        }
    }
}
