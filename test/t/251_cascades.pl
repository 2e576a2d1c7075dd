# Foreign keys whose ON DELETE and ON UPDATE the server does not log (B34): MariaDB always, MySQL with innodb_native_foreign_keys. What
# they do to child rows is done here too, several levels deep, also while the child is being copied; or refused; or left to the target.
# MySQL as it is logs them, and nothing is done twice.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $mysql = ($ENV{CDC_SOURCE} // '') eq 'mysql';
my $postgres = CdcBridge::Postgres->new;
my ($source, $pipeline);

sub make_source
{
	my (@args) = @_;
	$source = CdcBridge::Source->new(args => \@args);
	$source->sql('create database shop', 'create database elsewhere',
		'create table elsewhere.owner (id int primary key, code int not null unique)',
		'create table shop.p (id int primary key, v int)',
		'create table shop.c (id int primary key, pid int, owner int, v varchar(20), foreign key (pid) references shop.p (id) on delete cascade on update cascade,
			foreign key (owner) references elsewhere.owner (code) on delete set null on update cascade)',
		'create table shop.g (id int primary key, cid int, v int, foreign key (cid) references shop.c (id) on delete cascade on update cascade)',
		'create table shop.h (id int primary key, gid int, foreign key (gid) references shop.g (id) on delete set null on update set null)',
		'create table shop.cp (a int, b varchar(10) character set utf8mb4 collate utf8mb4_bin, u int unique, primary key (a, b))',
		'create table shop.cc (id int primary key, a int, b varchar(10) character set utf8mb4 collate utf8mb4_bin, index (a, b),
			foreign key (a, b) references shop.cp (a, b) on delete cascade on update cascade)',
		'create table shop.tree (id int primary key, up int, foreign key (up) references shop.tree (id) on delete cascade)',
		'create table shop.plain (id int primary key, pid int, foreign key (pid) references shop.p (id))');
	fill();
	return;
}

sub fill
{
	$source->sql('insert into elsewhere.owner values ' . join(', ', map { "($_, 1000 + $_)" } 1 .. 40), 'insert into shop.p values ' . join(', ', map { "($_, $_)" } 1 .. 40),
		'insert into shop.c values ' . join(', ', map { sprintf("(%d, %d, %d, 'c%d')", $_, 1 + $_ % 40, 1001 + $_ % 40, $_) } 1 .. 200),
		'insert into shop.g values ' . join(', ', map { sprintf('(%d, %d, 0)', $_, 1 + $_ % 200) } 1 .. 600),
		'insert into shop.h values ' . join(', ', map { sprintf('(%d, %d)', $_, 1 + $_ % 600) } 1 .. 900),
		'insert into shop.cp values ' . join(', ', map { sprintf("(%d, 'k%d', %d)", $_, $_ % 3, $_) } 1 .. 20),
		'insert into shop.cc values ' . join(', ', map { sprintf("(%d, %d, 'k%d')", $_, 1 + $_ % 20, (1 + $_ % 20) % 3) } 1 .. 60), 'insert into shop.cc values (100, 5, null)',
		'insert into shop.tree values (1, null)', map { sprintf('insert into shop.tree values (%d, %d)', $_, int($_ / 2)) } 2 .. 60);
	return;
}

sub begin
{
	my ($options, $tables) = @_;
	$pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => $options, tables => $tables // '{shop.*}')->setup->start;
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	return;
}
sub end { $pipeline->drop->drop_target; $postgres->psql('drop server shop cascade'); return; }
sub is_equal { my ($name) = @_; $pipeline->wait_for_catchup; return $pipeline->is_same($name); }
sub conflicts { return $postgres->psql('select sum(conflicts) from pg_stat_cdc_table'); }
sub states { return $postgres->psql(q{select string_agg(source_table || ' ' || state, ', ' order by source_table) from pg_stat_cdc_table where state <> 'streaming'}); }

sub change
{
	my ($name) = @_;
	$source->sql('delete from shop.p where id = 3');
	is_equal("B34: $name: ON DELETE CASCADE, three levels, then SET NULL");
	$source->sql('delete from shop.p where id between 10 and 15', 'update shop.p set id = 104 where id = 4', 'update shop.p set v = 5 where id = 5', 'update shop.c set id = 1007 where id = 7');
	is_equal("B34: $name: ON UPDATE CASCADE and SET NULL");
	$source->sql('delete from elsewhere.owner where id = 8', 'update elsewhere.owner set code = 2009 where id = 9', 'update elsewhere.owner set id = 110 where id = 10');
	is_equal("B34: $name: a parent that is not mirrored, referred to by another column than its key");
	$source->sql('delete from shop.cp where a = 6', q{update shop.cp set b = 'K' where a = 7}, 'update shop.cp set a = 108, u = 109 where a = 8', 'update shop.cp set u = 110 where a = 9');
	is_equal("B34: $name: composite keys");
	$source->sql('delete from shop.tree where id = 25');
	is_equal("B34: $name: a tree in one table");
	$source->sql('begin', 'insert into shop.p values (200, 0)', q{insert into shop.c values (500, 200, null, 'x'), (501, 200, null, 'y')}, 'insert into shop.g values (800, 500, 0)', 'delete from shop.c where id = 501',
		'delete from shop.p where id = 200', 'insert into shop.p values (200, 1)', q{insert into shop.c values (500, 200, null, 'z')}, 'commit');
	is_equal("B34: $name: all in one transaction");
	$source->sql('begin', 'delete from shop.p where id = 20', 'rollback', 'replace into shop.p values (21, 1)', 'insert into shop.p values (22, 1) on duplicate key update id = 122');
	is_equal("B34, B35: $name: REPLACE of a parent, ON DUPLICATE KEY UPDATE of its key");
	my $dbh = $source->connect;
	$dbh->do($_) for 'set foreign_key_checks = 0', 'delete from shop.p where id = 23', 'delete from shop.tree where id = 4', 'set foreign_key_checks = 1';
	is_equal("B34: $name: nothing happens when checks are off");
	$dbh->do($_) for q{xa start 'x'}, 'delete from shop.p where id = 24', 'delete from elsewhere.owner where id = 24', q{xa end 'x'}, q{xa prepare 'x'};
	$pipeline->wait_for_catchup;
	$dbh->do(q{xa commit 'x'});
	is_equal("B34: $name: in an XA transaction");
	is(states(), '', "$name: no table stopped");
	is(conflicts(), '0', "B34: $name: nothing is done twice");
	return;
}

if ($mysql)
{
	make_source();
	begin();
	change('MySQL, logged');
	is($postgres->psql(q{select status from cdc_check('shop') where "check" = 'foreign_keys'}), 'ok', 'cdc_check: all is logged');
	end();
	$source->stop;
}

make_source($mysql ? '--innodb-native-foreign-keys=ON' : ());
begin();
change($mysql ? 'MySQL, native' : 'MariaDB');
like($postgres->psql(q{select detail from cdc_check('shop') where "check" = 'foreign_keys'}), qr/^The server does not log what ON DELETE or ON UPDATE does/, 'cdc_check: not all is logged');
is($postgres->psql(q{select status, detail from cdc_check_pipeline('shop_in') where "check" = 'cascades'}),
	'ok|What the source does not log of foreign keys is done here too, for: shop.c, shop.cc, shop.g, shop.h, shop.tree.', 'cdc_check_pipeline says so');

# a foreign key that comes or goes
$source->sql('alter table shop.plain add constraint extra foreign key (pid) references shop.p (id) on delete cascade', 'alter table shop.p add index (v)');
$pipeline->wait_for_table_state('plain', 'stopped');
is(states(), 'plain stopped', 'a foreign key that is added stops its table, and no other');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.plain')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
$source->sql('insert into shop.plain values (1, 30), (2, 31)');
is_equal('copied anew');
$source->sql('alter table shop.plain drop foreign key extra');
$pipeline->wait_for_table_state('plain', 'stopped');
is(states(), 'plain stopped', 'one that is dropped too');
$postgres->psql(q{select cdc_remove_table('shop_in', 'shop.plain')});
$source->sql('drop table shop.plain');
end();

# while children are copied: slowly, and parents go all the time
$source->sql('delete from shop.c', 'delete from shop.p', 'delete from elsewhere.owner', 'drop table shop.h, shop.g, shop.tree, shop.cc, shop.cp');
$source->sql('insert into shop.p values ' . join(', ', map { "($_, $_)" } 1 .. 2000), 'insert into elsewhere.owner values ' . join(', ', map { "($_, $_)" } 1 .. 2000),
	'insert into shop.c values ' . join(', ', map { sprintf("(%d, %d, %d, 'c%d')", $_, 1 + $_ % 2000, 1 + $_ * 7 % 2000, $_) } 1 .. 6000));
$source->sql('create table shop.gg (id int primary key, cid int, foreign key (cid) references shop.c (id) on delete cascade)', 'insert into shop.gg select id, id from shop.c where id <= 1000');
$source->start_writers(2, sub {
	my ($dbh, $number) = @_;
	my ($p, $o) = (1 + int(rand(2000)), 1 + int(rand(2000)));
	my $statement = (
		"delete from shop.p where id = $p",
		"replace into shop.p values ($p, 0)",
		"update shop.p set id = id + 5000 where id = $p",
		"delete from elsewhere.owner where id = $o",
		"insert ignore into elsewhere.owner values ($o, $o)",
		"insert ignore into shop.c values (floor(rand() * 9000), $p, $o, 'new')",
		"update ignore shop.c set pid = $p, owner = $o where id = floor(rand() * 6000)")[rand 7];
	eval { local $dbh->{PrintError} = 0; $dbh->do($statement) };
	select(undef, undef, undef, 0.02);
});
$pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 100, "max_rows_per_second": 2000}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
$source->stop_writers;
is(states(), 'gg stopped', 'B34: children that are copied while parents change: no table stopped but the one below, of which nobody knows which rows went');
like($pipeline->table_status('gg', 'last_error'), qr/were changed by foreign keys through table "shop\.c"/, 'B34: which it says');
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.gg')});
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is(states(), '', 'B34: when the upper one streams it can be copied anew');
is_equal('B34: children that are copied while parents change');
$source->sql('drop table shop.gg');
end();

# the other choices
begin('{"cascades": "refuse"}');
is(states(), 'c stopped', 'refused');
like($pipeline->table_status('c', 'last_error_detail'), qr/^Foreign key ".+" changes rows of the table, and the source does not log that\./, 'with the reason');
is($pipeline->table_status('c', 'last_error_sqlstate'), 'YC005', 'and SQLSTATE');
like($pipeline->table_status('c', 'last_error_hint'), qr/option "cascades"/, 'and a hint');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"cascades": "synthesise"}')});
$postgres->psql(q{select cdc_resync_table('shop_in', 'shop.c')});
$pipeline->wait_for_state('streaming')->wait_for_tables;
$source->sql('delete from shop.p where id < 100');
is_equal('synthesised after all');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"cascades": "refuse"}')});
$pipeline->wait_for_table_state('c', 'stopped');
like($pipeline->table_status('c', 'last_error'), qr/^foreign key ".+" changes rows of source table "shop\.c"$/, 'and refused while it streams');
end();

begin('{"cascades": "target"}', '{shop.p,shop.c}');
$postgres->psql(<<'SQL');
alter table shop.c add foreign key (pid) references shop.p (id) on delete cascade on update cascade;
do $$ declare t record; begin for t in select tgrelid::regclass as r, tgname from pg_trigger where tgisinternal and tgrelid in ('shop.p'::regclass, 'shop.c'::regclass) loop
	execute format('alter table %s enable always trigger %I', t.r, t.tgname); end loop; end $$;
SQL
$source->sql('insert into shop.p values (9001, 1)', q{insert into shop.c values (9001, 9001, null, 'target')}, 'delete from shop.p where id between 100 and 300');
$pipeline->wait_for_catchup;
$pipeline->is_same('B34: a real foreign key of the target does it', qw(p));
is($postgres->psql('select count(*) from shop.c where pid between 100 and 300'), '0', 'B34: in the child too');
end();

# texts that compare in another way
$source->sql('create table shop.tp (k varchar(10) character set latin1 collate latin1_swedish_ci primary key)', 'create table shop.tc (id int primary key, k varchar(10) character set latin1 collate latin1_swedish_ci, foreign key (k) references shop.tp (k) on delete cascade)');
begin(undef, '{shop.tp,shop.tc}');
is(states(), 'tc stopped', 'a foreign key over texts of a collation is refused');
like($pipeline->table_status('tc', 'last_error_detail'), qr/texts that are equal in more ways than one/, 'with the reason');
end();

done_testing();
