# What only newer MariaDB servers have, beside what 201, 207, 208 and 240 show of them: keys in the uca1400 collations, times after 2038 as
# keys and as defaults, vector indexes, a limit for the size of the whole log.
# cells: mariadb118-15

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
plan skip_all => 'this server has none of it' unless $source->is_mariadb && $source->version >= 110700;
my $postgres = CdcBridge::Postgres->new;

# keys that a collation takes for different and another for equal; pages of three rows
my @words = qw(a Á b B ä Ae æ ß ss z Z ż 中 😀 ﬀ ff -x x- _ 10 9);
my %collation = (blind => 'uca1400_ai_ci', accents => 'uca1400_as_ci', exact => 'uca1400_as_cs', nopad => 'uca1400_nopad_as_cs', swedish => 'uca1400_swedish_ai_ci');
my %charset = (map({ $_ => 'utf8mb4' } keys %collation), accents => 'utf8mb3', swedish => 'utf16');
$source->sql('create database shop', 'use shop', (map { "create table $_ (k varchar(20) character set $charset{$_} collate $collation{$_} primary key, n int)" } sort keys %collation),
	q{create table times (k timestamp(3) primary key, d timestamp default '2100-01-01 12:00:00', e timestamp(6) null default '2106-02-07 06:28:15.999999', n int)},
	'create table vectors (id int primary key, v vector(3) not null, vector index (v))');
for my $table (sort keys %collation)
{
	$source->sql(map { "insert ignore into $table values ('$_', 1)" } grep { $charset{$table} ne 'utf8mb3' || !/😀/ } @words);
}
my $from = 0;
sub more_rows
{
	$source->sql((map { "insert into times (k, n) values (date_add('2038-01-19 03:14:05.5', interval " . ($_ + $from) . ' second), 1)' } 1 .. 8), q{insert ignore into times (k, n) values ('2106-02-07 06:28:15.999', 1)},
		map { "insert into vectors values ($from + $_, vec_fromtext('[$_, 0.5, -1]'))" } 1 .. 4);
	$from += 100;
	return;
}
more_rows();
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 3}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
my @tables = (sort(keys %collation), 'times', 'vectors');
$pipeline->is_same('copied', @tables);

# an image that leaves the defaults out
$source->sql('set session binlog_row_image = MINIMAL');
more_rows();
$source->sql('set session binlog_row_image = FULL', 'update times set d = null, n = 2 where n = 1 limit 3', 'delete from times where n = 2 limit 1', q{update vectors set v = vec_fromtext('[7, 8, 9]') where id = 1},
	'delete from vectors where id = 2', map { ("update $_ set n = n + 1", "update ignore $_ set k = 'AE' where k = 'Ae'", "delete from $_ where k = 'z'", "insert ignore into $_ values ('SS', 3)") } sort keys %collation);
$pipeline->wait_for_catchup;
$pipeline->is_same('streamed', @tables);
is($pipeline->status('tables_stopped'), '0', 'no table is stopped');
$pipeline->is_verified('cdc_verify() finds no difference', @tables);

$postgres->psql(q{insert into shop.times (k) values ('2050-01-01')});
is($postgres->psql(q{select d at time zone 'UTC', e at time zone 'UTC' from shop.times where k = '2050-01-01'}), '2100-01-01 12:00:00|2106-02-07 06:28:15.999999', 'defaults after 2038 are defaults here');
ok($postgres->poll(q{select state from pg_stat_cdc_index where source_table = 'vectors' and source_index = 'v'}, 'left_out'), 'a vector index is left out');

is($postgres->psql(q{select count(*) from cdc_check('shop') where "check" = 'max_binlog_total_size'}), '0', 'no limit for the log, no warning');
$source->sql('set global max_binlog_total_size = 1000000000');
like($postgres->psql(q{select status, detail, hint from cdc_check('shop') where "check" = 'max_binlog_total_size'}), qr/^warning\|.*1000000000 bytes.*\|SET GLOBAL max_binlog_total_size = 0;$/, 'a limit for the log is told');

done_testing();
